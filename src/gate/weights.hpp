// From the chosen experts' logits to their weights: what is computed for each; the sums over them are the
// caller's, as it holds the experts. Both ways of summing, over an array here and over lanes in the kernels,
// add neighbours first (0 with 1, 2 with 3, then those sums), with zeros for what is missing, so that every
// layout gives the same bits.
#pragma once

#include <cstddef>

#include "gate/contract.hpp"
#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// What the weight of a chosen expert is made of, before it is divided: its score; or, with softmax, the
// exponential of its distance to the highest logit, of the row or of the chosen. Where the row's total would
// cancel out, it is of the chosen.
enum class Weighting : int32_t { kSoftmaxOfChosen, kSoftmaxOfRow, kSigmoid, kSqrtSoftplus };

inline Weighting weighting_of(const Problem& problem) {
  if (problem.weight_mode == TY_GATE_SOFTMAX_OF_CHOSEN) return Weighting::kSoftmaxOfChosen;
  if (problem.score == TY_GATE_SIGMOID) return Weighting::kSigmoid;
  if (problem.score == TY_GATE_SQRT_SOFTPLUS) return Weighting::kSqrtSoftplus;
  const bool cancels = problem.weight_mode == TY_GATE_RENORMALIZED && problem.epsilon == 0;
  return cancels ? Weighting::kSoftmaxOfChosen : Weighting::kSoftmaxOfRow;
}

struct WeightRule {
  Weighting weighting;
  ty_gate_score score;
  ty_gate_weights mode;
  float epsilon;
  float scale;
  ty_gate_shared shared_mode;
  float shared;

  explicit WeightRule(const Problem& problem)
      : weighting(weighting_of(problem)),
        score(problem.score),
        mode(problem.weight_mode),
        epsilon(problem.epsilon),
        scale(problem.scale),
        shared_mode(problem.shared_mode),
        shared(problem.shared_weight) {}

  TY_DEVICE bool softmax_of_chosen() const { return weighting == Weighting::kSoftmaxOfChosen; }
  TY_DEVICE bool needs_row_total() const { return weighting == Weighting::kSoftmaxOfRow; }

  // Of ExactScores or QuickScores; 0 for NaN. `highest` is of the row or of the chosen, as above.
  template <class Scores>
  TY_DEVICE float numerator(const Scores& scores, float logit, float highest) const {
    if (weighting == Weighting::kSigmoid) return scores.sigmoid(logit);
    if (!Scores::kNanHasNone && logit != logit) return 0;
    return weighting == Weighting::kSqrtSoftplus ? scores.sqrt_softplus(logit)
                                                 : scores.exp_of_distance(logit, highest);
  }

  // `sum` is of the chosen numerators, `total` of the row's exponentials. 0: every weight is 0.
  TY_DEVICE float divisor(float sum, float total) const {
    if (softmax_of_chosen()) return sum;
    const float row = needs_row_total() ? total : 1.0f;
    return mode == TY_GATE_RAW ? row : port::fma(epsilon, row, sum);
  }

  template <class Scores>
  TY_DEVICE float weight(const Scores& scores, float numerator, float divisor) const {
    // Sums of numbers as large as sqrt-softplus may be have no quick reciprocal.
    const float share = weighting == Weighting::kSqrtSoftplus ? ExactScores::quotient(numerator, divisor)
                                                              : scores.quotient(numerator, divisor);
    return share * scale;
  }

  // `sum` is of the token's weights.
  TY_DEVICE float shared_weight(float sum) const {
    return shared_mode == TY_GATE_SHARED_OF_SUM ? shared * sum : shared;
  }
};

// The sum of `count` values as a tree over neighbours; `values` is scratch of at least the next power of two.
inline float tree_sum(float* values, size_t count) {
  size_t width = 1;
  while (width < count) width *= 2;
  for (size_t i = count; i < width; ++i) values[i] = 0;
  for (; width > 1; width /= 2) {
    for (size_t i = 0; i < width / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  }
  return values[0];
}

}  // namespace tokenyard::gate
