// From a checked call to its launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

#include "runtime/backend.hpp"
#include "runtime/text.hpp"
#include "training/contract.hpp"
#include "training/kernel_backward.hpp"
#include "training/kernel_balance.hpp"
#include "training/kernel_counts.hpp"
#include "training/kernel_loss.hpp"
#include "tuning/training.hpp"

namespace tokenyard::training {

// kShapes: the teams to compile kernels for: of tuning/training.hpp.
template <class Port, const auto& kShapes>
class Launcher {
 public:
  static TrainingOperations operations() { return {run_backward, run_loss, run_balance}; }

 private:
  static constexpr int kThreads = tuning::kTrainingThreads;
  static constexpr int kWarp = Port::Thread::warp_size;
  static constexpr int kFewChosen = 8;  // lanes that share a token where K is no more

  // Of a block whose rows teams of so many warps take.
  static constexpr int threads_of(int team) { return team == 1 ? kThreads : team * kWarp; }

  static Status expect_warps(const char* operation, const DeviceProperties& device) {
    if (device.warp_size == kWarp) return {};
    return {TY_UNSUPPORTED,
            text(operation, ": ", device.name, " has warps of ", device.warp_size, " lanes, expected ", kWarp,
                 ": this build has no kernels for it; use the CPU")};
  }

  static int blocks_for(int64_t work, int64_t of_a_block, int64_t most) {
    return static_cast<int>(std::min((work + of_a_block - 1) / of_a_block, most));
  }

  // Calls launch.operator()<warps, items>() for the first shape that holds the experts.
  template <size_t kIndex = 0, class Launch>
  static Status with_shape(int32_t experts, const Launch& launch) {
    constexpr tuning::RowShape shape = kShapes[kIndex];
    if constexpr (kIndex + 1 < std::size(kShapes)) {
      if (experts > shape.warps * shape.items * kWarp) return with_shape<kIndex + 1>(experts, launch);
    } else {
      static_assert(shape.warps * shape.items * kWarp >= gate::kMaxExperts);
    }
    return launch.template operator()<shape.warps, shape.items>();
  }

  static Status run_backward(const DeviceProperties& device, const GateBackwardProblem& problem,
                             Stream stream) {
    TY_RETURN_IF_ERROR(expect_warps("gate_backward", device));
    if (problem.forward.num_tokens == 0) return {};
    if (problem.reaches_all()) {
      return with_shape(problem.forward.num_experts, [&]<int kWarps, int kItems>() {
        constexpr int kRows = std::min(4, tuning::kBackwardItems / kItems);
        if constexpr (kWarps == 1 && kRows > 1) {
          const bool many = problem.forward.num_tokens >= device.multiprocessors * tuning::kBackwardTokens;
          if (many && problem.forward.top_k <= kWarp / kRows) {
            return launch_backward<RowBackward<kThreads, 1, kItems, kRows>>(device, problem, stream);
          }
        }
        return launch_backward<RowBackward<threads_of(kWarps), kWarps, kItems, 1>>(device, problem, stream);
      });
    }
    return problem.forward.top_k <= kFewChosen
               ? launch_backward<ChosenBackward<kThreads, kFewChosen>>(device, problem, stream)
               : launch_backward<ChosenBackward<kThreads, kWarp>>(device, problem, stream);
  }

  template <class Kernel>
  static Status launch_backward(const DeviceProperties& device, const GateBackwardProblem& problem,
                                Stream stream) {
    constexpr int kTokens = Kernel::template kTokens<typename Port::Thread>;
    const int64_t most = int64_t{device.multiprocessors} * tuning::kBackwardBlocks;
    return Port::launch(Kernel(problem), blocks_for(problem.forward.num_tokens, kTokens, most), stream);
  }

  static Status run_loss(const DeviceProperties& device, const RouterLossProblem& problem, Stream stream) {
    TY_RETURN_IF_ERROR(expect_warps("router_loss", device));
    if (problem.num_tokens > 0) {
      if (problem.ids != nullptr) TY_RETURN_IF_ERROR(count(problem, stream));
      switch (problem.score) {
        case TY_GATE_SOFTMAX:
          TY_RETURN_IF_ERROR(launch_losses<TY_GATE_SOFTMAX>(problem, stream));
          break;
        case TY_GATE_SIGMOID:
          TY_RETURN_IF_ERROR(launch_losses<TY_GATE_SIGMOID>(problem, stream));
          break;
        case TY_GATE_SQRT_SOFTPLUS:
          TY_RETURN_IF_ERROR(launch_losses<TY_GATE_SQRT_SOFTPLUS>(problem, stream));
          break;
      }
    }
    return Port::launch(SumOfLosses<tuning::kSumThreads>(problem), 2, stream);
  }

  static Status count(const RouterLossProblem& problem, Stream stream) {
    using Kernel = SequenceCounts<kThreads, tuning::kCountedTokens>;
    constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
    return Port::launch(Kernel(problem), blocks_for(problem.num_tokens, tuning::kCountedTokens, kAny),
                        stream);
  }

  template <ty_gate_score kScore>
  static Status launch_losses(const RouterLossProblem& problem, Stream stream) {
    return with_shape(problem.num_experts, [&]<int kWarps, int kItems>() {
      using Kernel = TokenLosses<threads_of(kWarps), kWarps, kItems, kScore>;
      return Port::launch(Kernel(problem), static_cast<int>(problem.runs()), stream);
    });
  }

  static Status run_balance(const DeviceProperties& device, const BalanceProblem& problem, Stream stream) {
    TY_RETURN_IF_ERROR(expect_warps("balance", device));
    return Port::launch(Balance<kThreads>(problem), 1, stream);
  }
};

}  // namespace tokenyard::training
