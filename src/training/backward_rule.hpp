// From the gradients of a token's K weights to those of its logits: what is computed for each expert; sums
// over the chosen are the caller's, in the order of gate/weights.hpp. Formulas: docs/training.md.
//
//   dL/dx of chosen k    (G_k - dot) slope_k - n_k common     G_k = scale x dL/dw_k, dot = sum of G_k w_k /
//   scale of every other one              0        - e   common
//
// n and e are gate's numerators: with a softmax over all experts exponentials that the row's total divides.
#pragma once

#include "gate/score.hpp"
#include "gate/weights.hpp"
#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/slope.hpp"

namespace tokenyard::training {

struct BackwardRule {
  gate::WeightRule forward;
  bool reaches_all;

  explicit BackwardRule(const GateBackwardProblem& problem)
      : forward(problem.forward), reaches_all(problem.reaches_all()) {}

  // `logit` is NaN where nothing was chosen, too: no gradient comes from there.
  TY_DEVICE float weight_grad(float logit, float grad) const {
    return logit == logit ? forward.scale * grad : 0;
  }

  // `dot` is the sum over the chosen of grad x weight / scale. Independent scores have no use for it.
  TY_DEVICE float shared_grad(float dot) const {
    return forward.mode == TY_GATE_RAW && forward.score != TY_GATE_SOFTMAX ? 0 : dot;
  }

  // What every expert loses, for each unit of its exponential, because it is in the row's total.
  TY_DEVICE float common(float dot, float divisor) const {
    if (!reaches_all || !(divisor > 0)) return 0;
    return (forward.mode == TY_GATE_RAW ? dot : dot * forward.epsilon) / divisor;
  }

  // Of a chosen expert; `grad` is weight_grad(), `dot` is shared_grad().
  TY_DEVICE float chosen(float logit, float numerator, float divisor, float grad, float dot,
                         float common) const {
    if (!(divisor > 0) || logit != logit) return 0;
    float slope = numerator;
    if (forward.score != TY_GATE_SOFTMAX && !forward.softmax_of_chosen()) {
      const float second = gate::sigmoid(second_argument(forward.score, logit));
      slope = slope_of(forward.score, logit, numerator, second);
    }
    const float own = (grad - dot) * (slope / divisor);
    return forward.mode == TY_GATE_RAW ? own : own - numerator * common;
  }
};

}  // namespace tokenyard::training
