// The backward of gate: a kernel for weights that depend on the chosen logits alone, and one for those that
// the row's total divides.
//
//   ids ─▶ logits of the chosen, their weights' gradients ─▶ sums over the chosen ─▶ a gradient for each of
//   them zeros, or what every expert loses to the total ─▶ the row ─▶ the chosen ones' gradients over it
//   logits ─▶ exponentials of all, in registers ─▶ that total
#pragma once

#include <cstdint>

#include "gate/score.hpp"
#include "port/port.hpp"
#include "training/chosen.hpp"
#include "training/contract.hpp"
#include "training/row.hpp"

namespace tokenyard::training {

// kLanes: of a token, at least as many as K, or the whole warp.
template <int kThreads, int kLanes>
struct ChosenBackward {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {};

  BackwardCall call;

  explicit ChosenBackward(const GateBackwardProblem& problem) : call(problem) {}

  template <class Thread>
  static constexpr int kTokens = kThreads / kLanes;  // of a block at a time

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    constexpr int kOfWarp = Thread::warp_size / kLanes;
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * kTokens<Thread>;
    for (int64_t first = static_cast<int64_t>(gpu.block()) * kTokens<Thread> + gpu.warp() * kOfWarp;
         first < call.num_tokens; first += step) {
      const int64_t token = first + gpu.lane() / kLanes;
      Chosen<kLanes> chosen(gpu, call, token < call.num_tokens ? token : -1);
      const int64_t end = port::min_of(first + kOfWarp, int64_t{call.num_tokens});
      call.logits_grad.clear(first, end, gpu.lane(), Thread::warp_size);  // while the loads are under way
      chosen.differentiate(gpu, 0, 0);
      gpu.sync_warp();
      chosen.store();
    }
  }
};

// kWarps: of a token, 1 or all of the block's. kRows: that a team has under way together; K is at most its
// share of a warp's lanes, or the only one.
template <int kThreads, int kWarps, int kItems, int kRows>
struct RowBackward {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    typename Team<Thread, kWarps>::Partial partial;
  };

  BackwardCall call;

  explicit RowBackward(const GateBackwardProblem& problem) : call(problem) {}

  template <class Thread>
  static constexpr int kTokens = kThreads / Team<Thread, kWarps>::kLanes * kRows;  // of a block at a time

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    Team<Thread, kWarps> team(gpu, gpu.template shared<Shared<Thread>>().partial);
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * kTokens<Thread>;
    for (int64_t first = static_cast<int64_t>(gpu.block()) * kTokens<Thread> + gpu.warp() / kWarps * kRows;
         first < call.num_tokens; first += step) {
      write_rows(gpu, team, first);
    }
  }

 private:
  // Each of the team's warps knows all that was chosen.
  template <class Thread>
  TY_DEVICE void write_rows(Thread& gpu, Team<Thread, kWarps>& team, int64_t first) const {
    constexpr int kLanes = Thread::warp_size / kRows;  // that have the chosen of a row
    const int row_of_lane = gpu.lane() / kLanes;
    const auto exists = [&](int row) { return kRows == 1 || first + row < call.num_tokens; };
    float item[kRows][kItems] = {};
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (exists(row)) call.logits.load(first + row, team.lane() * kItems, item[row]);
    }
    Chosen<kLanes> chosen(gpu, call, exists(row_of_lane) ? first + row_of_lane : -1);

    float highest = 0, total = 0;  // of the lane's row
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const float highest_of_row = team.max(highest_of(item[row]));
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const float x = item[row][i];
        item[row][i] = x == x ? gate::exp_of_distance(x, highest_of_row) : 0;
      }
      const float total_of_row = team.sum(port::tree_sum<kItems>(item[row]));
      if (row_of_lane == row) {
        highest = highest_of_row;
        total = total_of_row;
      }
    }
    const float common = chosen.differentiate(gpu, highest, total);

#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const float common_of_row = gpu.shfl(common, row * kLanes);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        item[row][i] = 0.0f - item[row][i] * common_of_row;  // from 0: no zero is negative
      }
      if (exists(row)) call.logits_grad.store(first + row, team.lane() * kItems, item[row]);
    }
    team.sync();
    if (team.is_first_warp()) chosen.store();
  }

  static TY_DEVICE float highest_of(const float (&item)[kItems]) {
    float highest = -gate::kInfinity;
#pragma unroll
    for (int i = 0; i < kItems; ++i) highest = item[i] > highest ? item[i] : highest;
    return highest;
  }
};

}  // namespace tokenyard::training
