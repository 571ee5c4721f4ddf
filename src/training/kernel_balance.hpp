// Balancing by a bias: one block reads all counts, twice.
//
//   counts ─▶ their sum, highest, lowest, those that are 0 ─▶ biases, a step each
//                                                         └▶ entropy ─▶ statistics
#pragma once

#include <cstdint>

#include "gate/contract.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/load.hpp"

namespace tokenyard::training {

template <int kThreads>
struct Balance {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    static constexpr int kWarps = kThreads / Thread::warp_size;
    typename Thread::template array<int64_t, 4 * kWarps> partial;
    typename Thread::template array<float, gate::kMaxExperts / Thread::warp_size> entropy;
  };

  BalanceProblem problem;

  explicit Balance(const BalanceProblem& problem) : problem(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    LoadSums sums = sums_of(gpu, shared);
    if (problem.bias != nullptr) {
      for (int32_t e = gpu.thread(); e < problem.num_experts; e += kThreads) {
        const int32_t sign = direction(count_of(problem, e), sums.pairs, problem.num_experts);
        problem.bias[e] += problem.rate * static_cast<float>(sign);
      }
    }
    if (problem.statistics == nullptr) return;
    sums.entropy = entropy_of(gpu, shared, sums.pairs);
    if (gpu.thread() == 0) write_statistics(problem, sums);
  }

 private:
  template <class Thread>
  static TY_DEVICE int64_t sum_of_lanes(Thread& gpu, int64_t value) {
#pragma unroll
    for (int mask = 1; mask < Thread::warp_size; mask *= 2) value += gpu.shfl_xor(value, mask);
    return value;
  }

  // In the order of LoadSums, but for the entropy: all threads get them.
  template <class Thread>
  TY_DEVICE LoadSums sums_of(Thread& gpu, Shared<Thread>& shared) const {
    constexpr int kWarps = Shared<Thread>::kWarps;
    LoadSums mine{0, 0, INT64_MAX, 0, 0};
    for (int32_t e = gpu.thread(); e < problem.num_experts; e += kThreads) {
      const int64_t count = count_of(problem, e);
      mine = joined(mine, {count, count, count, count == 0 ? 1 : 0, 0});
    }
    mine = {sum_of_lanes(gpu, mine.pairs), port::lanes_max<Thread::warp_size>(gpu, mine.highest),
            -port::lanes_max<Thread::warp_size>(gpu, -mine.lowest), sum_of_lanes(gpu, mine.idle), 0};
    if (gpu.lane() == 0) {
      shared.partial(gpu.warp()) = mine.pairs;
      shared.partial(kWarps + gpu.warp()) = mine.highest;
      shared.partial(2 * kWarps + gpu.warp()) = mine.lowest;
      shared.partial(3 * kWarps + gpu.warp()) = mine.idle;
    }
    gpu.sync_block();
    LoadSums all{0, 0, INT64_MAX, 0, 0};
    for (int warp = 0; warp < kWarps; ++warp) {
      all = joined(all, {shared.partial(warp), shared.partial(kWarps + warp),
                         shared.partial(2 * kWarps + warp), shared.partial(3 * kWarps + warp), 0});
    }
    return all;
  }

  static TY_DEVICE LoadSums joined(const LoadSums& a, const LoadSums& b) {
    return {a.pairs + b.pairs, a.highest > b.highest ? a.highest : b.highest,
            a.lowest < b.lowest ? a.lowest : b.lowest, a.idle + b.idle, 0};
  }

  // To the first warp. Neighbours first: inside each warp's width of experts, then these sums.
  template <class Thread>
  TY_DEVICE float entropy_of(Thread& gpu, Shared<Thread>& shared, int64_t pairs) const {
    constexpr int kWarp = Thread::warp_size;
    constexpr int kWidths = gate::kMaxExperts / kWarp;
    const int32_t widths = (problem.num_experts + kWarp - 1) / kWarp;
    for (int32_t width = gpu.warp(); width < kWidths; width += gpu.warps()) {
      const int32_t e = width * kWarp + gpu.lane();
      float sum = 0;
      if (width < widths) {
        const float term = e < problem.num_experts ? entropy_term(count_of(problem, e), pairs) : 0.0f;
        sum = port::lanes_tree_sum<kWarp>(gpu, term);
      }
      if (gpu.lane() == 0) shared.entropy(width) = sum;
    }
    gpu.sync_block();
    if (gpu.warp() > 0) return 0;
    constexpr int kSlots = (kWidths + kWarp - 1) / kWarp;
    float sum[kSlots];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      sum[slot] = shared.entropy(slot * kWarp + gpu.lane());
    }
    return port::lanes_tree_sum<kWarp>(gpu, sum);
  }
};

}  // namespace tokenyard::training
