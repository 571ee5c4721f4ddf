// The backward of gate: a team of lanes a token.
//
//   ids ─▶ logits of the chosen, their weights' gradients ─▶ sums over the chosen ─▶ a gradient for each of
//   them logits ─▶ exponentials of all, in registers ─▶ their total     (only where the row's total divides
//   the weights) what every expert loses to the total, else zeros ─▶ the row ─▶ the chosen ones' gradients
//   over it
#pragma once

#include <cstdint>

#include "gate/score.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "training/backward_rule.hpp"
#include "training/contract.hpp"
#include "training/row.hpp"

namespace tokenyard::training {

// kWarps: of a team, 1 or all of the block's. kReachesAll: as the rule says.
template <int kThreads, int kWarps, int kItems, bool kReachesAll>
struct GateBackward {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    typename Team<Thread, kWarps>::Partial partial;
  };

  Rows logits, logits_grad;
  const float* weights_grad;
  const void* ids;
  int32_t num_tokens;
  int32_t top_k;
  int32_t num_columns;  // of ids and weights_grad
  bool ids_are_int64;
  BackwardRule rule;

  explicit GateBackward(const GateBackwardProblem& problem)
      : logits(problem.forward.logits, problem.forward.logits_dtype, problem.forward.row_stride,
               problem.forward.num_experts),
        logits_grad(problem.logits_grad, problem.forward.logits_dtype, problem.forward.num_experts,
                    problem.forward.num_experts),
        weights_grad(problem.weights_grad),
        ids(problem.forward.ids),
        num_tokens(static_cast<int32_t>(problem.forward.num_tokens)),
        top_k(problem.forward.top_k),
        num_columns(problem.forward.columns()),
        ids_are_int64(problem.forward.ids_are_int64),
        rule(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    Team<Thread, kWarps> team(gpu, gpu.template shared<Shared<Thread>>().partial);
    constexpr int kTeams = kThreads / Team<Thread, kWarps>::kLanes;
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * kTeams;
    for (int64_t token = static_cast<int64_t>(gpu.block()) * kTeams + gpu.warp() / kWarps; token < num_tokens;
         token += step) {
      Row<Thread>(*this, gpu, team, token).write();
    }
  }

 private:
  // One token, by one team. Each of its warps knows all that was chosen.
  template <class Thread>
  class Row {
   public:
    TY_DEVICE Row(const GateBackward& backward, Thread& gpu, Team<Thread, kWarps>& team, int64_t token)
        : backward_(backward), gpu_(gpu), team_(team), token_(token) {}

    TY_DEVICE void write() {
      const bool is_real = load_chosen();
      float item[kItems] = {};
      float common = 0;
      if (is_real) {
        if constexpr (kReachesAll) add_up_row(item);
        common = finish_chosen();
      }
      if constexpr (kReachesAll) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) item[i] = 0.0f - item[i] * common;  // from 0: no zero is negative
      }
      backward_.logits_grad.store(token_, team_.lane() * kItems, item);
      team_.sync();
      if (!team_.is_first_warp()) return;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        if (expert_[slot] >= 0) backward_.logits_grad.store_item(token_, expert_[slot], grad_[slot]);
      }
    }

   private:
    static constexpr int kWarp = Thread::warp_size;
    static constexpr int kSlots = gate::kMaxTopK / kWarp;

    // Lane l has those of ranks l, l + kWarp, ...; returns whether any is an expert.
    TY_DEVICE bool load_chosen() {
      bool any = false;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int32_t rank = gpu_.lane() + slot * kWarp;
        expert_[slot] = -1;
        logit_[slot] = kNan;
        grad_[slot] = 0;
        if (rank >= backward_.top_k) continue;
        const int64_t at = token_ * backward_.num_columns + rank;
        const int64_t id = backward_.ids_are_int64 ? static_cast<const int64_t*>(backward_.ids)[at]
                                                   : static_cast<const int32_t*>(backward_.ids)[at];
        if (id < 0 || id >= backward_.logits.columns) continue;
        any = true;
        expert_[slot] = static_cast<int32_t>(id);
        logit_[slot] = backward_.logits.item(token_, expert_[slot]);
        grad_[slot] = backward_.rule.weight_grad(logit_[slot], backward_.weights_grad[at]);
      }
      return gpu_.any(any);
    }

    // Items become exponentials.
    TY_DEVICE void add_up_row(float (&item)[kItems]) {
      backward_.logits.load(token_, team_.lane() * kItems, item);
#pragma unroll
      for (int i = 0; i < kItems; ++i) highest_ = item[i] > highest_ ? item[i] : highest_;
      highest_ = team_.max(highest_);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        item[i] = item[i] == item[i] ? gate::exp_of_distance(item[i], highest_) : 0;
      }
      total_ = team_.sum(port::tree_sum<kItems>(item));
    }

    // grad_ becomes that of the chosen logits; returns what every expert loses.
    TY_DEVICE float finish_chosen() {
      const BackwardRule& rule = backward_.rule;
      float highest = highest_;
      if (rule.forward.softmax_of_chosen()) {
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
          highest = logit_[slot] > highest ? logit_[slot] : highest;
        }
        highest = port::lanes_max<kWarp>(gpu_, highest);
      }
      float numerator[kSlots], term[kSlots];
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        numerator[slot] = rule.forward.numerator(logit_[slot], highest);
      }
      const float divisor = rule.forward.divisor(port::lanes_tree_sum<kWarp>(gpu_, numerator), total_);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        term[slot] = divisor > 0 ? grad_[slot] * (numerator[slot] / divisor) : 0;
      }
      const float dot = rule.shared_grad(port::lanes_tree_sum<kWarp>(gpu_, term));
      const float common = rule.common(dot, divisor);
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        grad_[slot] = rule.chosen(logit_[slot], numerator[slot], divisor, grad_[slot], dot, common);
      }
      return common;
    }

    const GateBackward& backward_;
    Thread& gpu_;
    Team<Thread, kWarps>& team_;
    const int64_t token_;
    int32_t expert_[kSlots];  // -1: none
    float logit_[kSlots], grad_[kSlots];
    float highest_ = -gate::kInfinity;
    float total_ = 0;
  };
};

}  // namespace tokenyard::training
