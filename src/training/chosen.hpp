// What the kernels of the backward share: the chosen experts of a token, a lane each, and their gradients.
#pragma once

#include <cstdint>

#include "gate/score.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "training/backward_rule.hpp"
#include "training/contract.hpp"
#include "training/row.hpp"

namespace tokenyard::training {

struct BackwardCall {
  Rows logits, logits_grad;
  const float* weights_grad;
  const void* ids;
  int32_t num_tokens;
  int32_t top_k;
  int32_t num_columns;  // of ids and weights_grad
  bool ids_are_int64;
  BackwardRule rule;

  explicit BackwardCall(const GateBackwardProblem& problem)
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
};

// Of one token for each kLanes lanes: lane l has the chosen of ranks l, l + kLanes, ...
template <int kLanes>
class Chosen {
 public:
  // Every lane of the warp must call all of them. `token` is below 0 where a lane's does not exist.
  template <class Thread>
  TY_DEVICE Chosen(Thread& gpu, const BackwardCall& call, int64_t token) : call_(call), token_(token) {
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      expert_[slot] = -1;
      logit_[slot] = kNan;
      grad_[slot] = 0;
      const int32_t rank = gpu.lane() % kLanes + slot * kLanes;
      if (rank >= call.top_k || token < 0) continue;
      const int64_t at = token * call.num_columns + rank;
      const int64_t id = call.ids_are_int64 ? static_cast<const int64_t*>(call.ids)[at]
                                            : static_cast<const int32_t*>(call.ids)[at];
      const float grad = call.weights_grad[at];
      if (id < 0 || id >= call.logits.columns) continue;
      expert_[slot] = static_cast<int32_t>(id);
      logit_[slot] = call.logits.item(token, expert_[slot]);
      grad_[slot] = call.rule.weight_grad(logit_[slot], grad);
    }
  }

  // From the gradients of the weights to those of the logits. `highest` and `total` are the row's, needed
  // where the rule reaches all. Returns what every expert loses, to the lanes that have a rank.
  template <class Thread>
  TY_DEVICE float differentiate(Thread& gpu, float highest, float total) {
    const BackwardRule& rule = call_.rule;
    if (rule.forward.softmax_of_chosen()) {
      highest = -gate::kInfinity;
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        highest = logit_[slot] > highest ? logit_[slot] : highest;
      }
      highest = port::lanes_max<kLanes>(gpu, highest, call_.top_k);
    }
    float numerator[kSlots], term[kSlots];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      numerator[slot] = has(slot) ? rule.forward.numerator(gate::ExactScores{}, logit_[slot], highest) : 0;
    }
    const float divisor = rule.forward.divisor(sum(gpu, numerator), total);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      term[slot] = has(slot) && divisor > 0 ? grad_[slot] * (numerator[slot] / divisor) : 0;
    }
    const float dot = rule.shared_grad(sum(gpu, term));
    const float common = rule.common(dot, divisor);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      if (!has(slot)) continue;
      grad_[slot] = rule.chosen(logit_[slot], numerator[slot], divisor, grad_[slot], dot, common);
    }
    return common;
  }

  TY_DEVICE void store() const {
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      if (expert_[slot] >= 0) call_.logits_grad.store_item(token_, expert_[slot], grad_[slot]);
    }
  }

 private:
  static constexpr int kSlots = kLanes < 32 ? 1 : gate::kMaxTopK / kLanes;

  // The same for all lanes: what no token has a rank for is skipped.
  TY_DEVICE bool has(int slot) const { return slot == 0 || slot * kLanes < call_.top_k; }

  template <class Thread>
  TY_DEVICE float sum(Thread& gpu, const float (&value)[kSlots]) const {
    return port::lanes_tree_sum<kLanes>(gpu, value, call_.top_k);
  }

  const BackwardCall& call_;
  const int64_t token_;
  int32_t expert_[kSlots];  // -1: none
  float logit_[kSlots], grad_[kSlots];
};

}  // namespace tokenyard::training
