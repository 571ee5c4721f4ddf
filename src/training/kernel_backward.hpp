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
  static constexpr int kTokens = kThreads / kLanes;  // of a block at a time

  template <class Thread>
  struct Shared {};

  BackwardCall call;

  explicit ChosenBackward(const GateBackwardProblem& problem) : call(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    constexpr int kOfWarp = Thread::warp_size / kLanes;
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * kTokens;
    for (int64_t first = static_cast<int64_t>(gpu.block()) * kTokens + gpu.warp() * kOfWarp;
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

// kWarps: of a token, 1 or all of the block's.
template <int kThreads, int kWarps, int kItems>
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
  TY_DEVICE void operator()(Thread& gpu) const {
    Team<Thread, kWarps> team(gpu, gpu.template shared<Shared<Thread>>().partial);
    constexpr int kTeams = kThreads / Team<Thread, kWarps>::kLanes;
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * kTeams;
    for (int64_t token = static_cast<int64_t>(gpu.block()) * kTeams + gpu.warp() / kWarps;
         token < call.num_tokens; token += step) {
      write_row(gpu, team, token);
    }
  }

 private:
  // Each of the team's warps knows all that was chosen.
  template <class Thread>
  TY_DEVICE void write_row(Thread& gpu, Team<Thread, kWarps>& team, int64_t token) const {
    float item[kItems];
    call.logits.load(token, team.lane() * kItems, item);
    Chosen<Thread::warp_size> chosen(gpu, call, token);
    float common = 0;
    if (gpu.any(chosen.has_any())) {  // else padding
      float highest = -gate::kInfinity;
#pragma unroll
      for (int i = 0; i < kItems; ++i) highest = item[i] > highest ? item[i] : highest;
      highest = team.max(highest);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        item[i] = item[i] == item[i] ? gate::exp_of_distance(item[i], highest) : 0;
      }
      const float total = team.sum(port::tree_sum<kItems>(item));
      common = gpu.shfl(chosen.differentiate(gpu, highest, total), 0);
    } else {
#pragma unroll
      for (int i = 0; i < kItems; ++i) item[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < kItems; ++i) item[i] = 0.0f - item[i] * common;  // from 0: no zero is negative
    call.logits_grad.store(token, team.lane() * kItems, item);
    team.sync();
    if (team.is_first_warp()) chosen.store();
  }
};

}  // namespace tokenyard::training
