// From a plan to a launch, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "gate/contract.hpp"
#include "gate/kernel_any.hpp"
#include "gate/kernel_lanes.hpp"
#include "gate/kernel_thread.hpp"
#include "gate/lanes_row.hpp"
#include "gate/packed_row.hpp"
#include "gate/plan.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"
#include "tuning/gate.hpp"

namespace tokenyard::gate {

// kShapes: the kernels to compile, as plan() will choose among them: of tuning/gate.hpp.
template <class Port, const auto& kShapes>
class Launcher {
 public:
  static GateOperation operation() { return {run, explain}; }

 private:
  static constexpr int kWarp = Port::Thread::warp_size;
  static constexpr int kBlocksPerMultiprocessor = 32;  // of the kernel for any shape, which loops over tokens

  struct Call {
    const DeviceProperties& device;
    const Problem& problem;
    const Plan plan;
    Stream stream;
  };

  static std::string explain(const DeviceProperties& device, const Problem& problem) {
    return describe(gate::plan(device, problem), device, problem);
  }

  static Status run(const DeviceProperties& device, const Problem& problem, Stream stream) {
    if (device.warp_size != kWarp) {
      return {TY_UNSUPPORTED,
              text("gate: ", device.name, " has warps of ", device.warp_size, " lanes, expected ", kWarp,
                   ": this build has no kernels for it; use the CPU")};
    }
    const Call call{device, problem, gate::plan(device, problem), stream};
    switch (problem.logits_dtype) {
      case TY_BFLOAT16:
        return run_plan<port::bfloat16>(call);
      case TY_FLOAT16:
        return run_plan<port::float16>(call);
      default:
        return run_plan<float>(call);
    }
  }

  template <class Logit>
  static Status run_plan(const Call& call) {
    if (call.plan.shape == Plan::kAnyShape) return run_any<Logit>(call);
    if (call.plan.shape == Plan::kNoShape) return no_kernel(call);
    return run_shape<Logit>(call);
  }

  static Status no_kernel(const Call& call) {
    return {TY_UNSUPPORTED,
            text("gate: lanes is ", call.plan.lanes, " with ", call.problem.num_experts,
                 " experts and top_k ", call.problem.top_k,
                 ", expected a number of lanes that holds them on ", call.device.name, ": use 0")};
  }

  // The kernel of the plan's shape, from the one with this index on.
  template <class Logit, size_t kIndex = 0>
  static Status run_shape(const Call& call) {
    if constexpr (kIndex + 1 < std::size(kShapes)) {
      if (call.plan.shape != static_cast<int32_t>(kIndex)) return run_shape<Logit, kIndex + 1>(call);
    }
    constexpr tuning::GateShape shape = kShapes[kIndex];
    if constexpr (shape.lanes == 1) {
      return run_thread<Logit>(call);
    } else if constexpr (shape.serves != tuning::kPacked) {
      return run_lanes<Logit, shape>(call);
    } else if constexpr (sizeof(Logit) == 2) {
      return launch_ungrouped<PackedRow, Logit, shape>(call);
    } else {
      return no_kernel(call);
    }
  }

  // Experts are chosen by selection values.
  template <class Logit, tuning::GateShape kShape>
  static Status run_lanes(const Call& call) {
    using enum Selection;
    const Problem& problem = call.problem;
    const Weighting weighting = weighting_of(problem);
    if (problem.num_groups > 1 && problem.bias == nullptr) {
      constexpr unsigned kMasked = sizeof(Logit) == 2 ? tuning::kMasked16 : tuning::kMasked32;
      if constexpr ((kShape.serves & kMasked) != 0) {
        return launch_lanes<LanesRow, Logit, kShape, kLogit, Grouping::kMasked, Weighting::kSoftmaxOfRow>(
            call);
      }
    } else if (problem.num_groups > 1) {
      if constexpr ((kShape.serves & tuning::kGrouped) != 0) {
        if (problem.num_groups == 8 && problem.num_experts == kShape.lanes * kShape.items) {
          return launch_lanes<LanesRow, Logit, kShape, kSigmoid, Grouping::kEight, Weighting::kSigmoid>(call);
        }
        if constexpr (kShape.lanes >= 32) {
          return launch_lanes<LanesRow, Logit, kShape, kSigmoid, Grouping::kAny, Weighting::kSigmoid>(call);
        }
      }
    } else if constexpr ((kShape.serves & tuning::kUngrouped) != 0) {
      if (problem.bias == nullptr) return launch_ungrouped<LanesRow, Logit, kShape>(call);
      return weighting == Weighting::kSqrtSoftplus
                 ? launch_lanes<LanesRow, Logit, kShape, kSqrtSoftplus, Grouping::kNone,
                                Weighting::kSqrtSoftplus>(call)
                 : launch_lanes<LanesRow, Logit, kShape, kSigmoid, Grouping::kNone, Weighting::kSigmoid>(
                       call);
    }
    return no_kernel(call);
  }

  // Neither a bias nor groups.
  template <template <class, class, int> class Row, class Logit, tuning::GateShape kShape>
  static Status launch_ungrouped(const Call& call) {
    using enum Weighting;
    switch (weighting_of(call.problem)) {
      case kSigmoid:
        return launch_lanes<Row, Logit, kShape, Selection::kLogit, Grouping::kNone, kSigmoid>(call);
      case kSoftmaxOfRow:
        return launch_lanes<Row, Logit, kShape, Selection::kLogit, Grouping::kNone, kSoftmaxOfRow>(call);
      default:
        return launch_lanes<Row, Logit, kShape, Selection::kLogit, Grouping::kNone, kSoftmaxOfChosen>(call);
    }
  }

  template <template <class, class, int> class Row, class Logit, tuning::GateShape kShape,
            Selection kSelection, Grouping kGrouping, Weighting kWeighting>
  static Status launch_lanes(const Call& call) {
    using Shape = RowShape<Logit, kShape.lanes, kShape.items, kSelection, kGrouping, kWeighting>;
    using Kernel = LanesGate<Row, Shape, tuning::kGateThreads, kShape.resident>;
    return Port::launch(Kernel(call.problem), blocks_for(call.problem.num_tokens, Kernel::kTokens),
                        call.stream);
  }

  template <class Logit>
  static Status run_thread(const Call& call) {
    const bool of_chosen = weighting_of(call.problem) == Weighting::kSoftmaxOfChosen;
    if (call.problem.top_k > 2) {
      return of_chosen ? launch_thread<Logit, 8, true>(call) : launch_thread<Logit, 8, false>(call);
    }
    return of_chosen ? launch_thread<Logit, 2, true>(call) : launch_thread<Logit, 2, false>(call);
  }

  template <class Logit, int kMaxK, bool kOfChosen>
  static Status launch_thread(const Call& call) {
    using Kernel = ThreadGate<Logit, tuning::kGateThreads, kMaxK, kOfChosen>;
    return Port::launch(Kernel(call.problem), blocks_for(call.problem.num_tokens, Kernel::threads),
                        call.stream);
  }

  template <class Logit>
  static Status run_any(const Call& call) {
    using Small = AnyGate<Logit, tuning::kGateAnyThreads, 512>;
    using Large = AnyGate<Logit, tuning::kGateAnyLargeThreads, kMaxExperts>;
    return call.problem.num_experts <= 512 ? launch_any<Small>(call) : launch_any<Large>(call);
  }

  template <class Kernel>
  static Status launch_any(const Call& call) {
    const int most = call.device.multiprocessors * kBlocksPerMultiprocessor;
    return Port::launch(Kernel(call.problem),
                        std::min(blocks_for(call.problem.num_tokens, Kernel::threads / kWarp), most),
                        call.stream);
  }

  static int blocks_for(int64_t tokens, int64_t tokens_a_block) {
    return static_cast<int>((tokens + tokens_a_block - 1) / tokens_a_block);
  }
};

}  // namespace tokenyard::gate
