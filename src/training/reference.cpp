#include "training/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace tokenyard::training {
namespace {

using Row = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double score_of(ty_gate_score score, double x) {
  if (std::isnan(x)) return 0;
  if (score == TY_GATE_SIGMOID) return sigmoid(x);
  return x == kInfinity ? std::ldexp(1, 121) : std::sqrt(softplus(x));
}

double slope_of(ty_gate_score score, double x) {
  if (std::isnan(x) || std::isinf(x)) return 0;
  if (score == TY_GATE_SIGMOID) return sigmoid(x) * sigmoid(-x);
  const double s = std::sqrt(softplus(x));
  return s > 0 ? sigmoid(x) / (2 * s) : 0;
}

// e^x / sum of e^x over the row; NaN takes no part, and infinities share alike.
Row softmax(const Row& x) {
  double highest = -kInfinity;
  for (const double each : x) {
    if (each > highest) highest = each;
  }
  Row p(x.size(), 0.0);
  if (highest == -kInfinity) return p;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isnan(x[i])) p[i] = x[i] == highest ? 1 : std::exp(x[i] - highest);
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= total;
  return p;
}

// ln of the sum of e^x over the row; -inf where there is nothing to add.
double log_sum_exp(const Row& x) {
  double highest = -kInfinity;
  for (const double each : x) {
    if (each > highest) highest = each;
  }
  if (std::isinf(highest)) return highest;
  double total = 0;
  for (const double each : x) {
    if (!std::isnan(each)) total += std::exp(each - highest);
  }
  return highest + std::log(total);
}

Row row_of(const Row& values, int64_t row, int32_t columns) {
  const auto from = values.begin() + row * columns;
  return {from, from + columns};
}

// A sum, and the sum of the magnitudes of its terms.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double term) { add(term, std::fabs(term)); }
  void add(double term, double size) {
    value += term;
    magnitude += size;
  }
};

// Through a softmax p: from dL/dp_i to dL/dx_i = p_i (dL/dp_i - sum of p_j dL/dp_j).
void through_softmax(const Row& p, const std::vector<Sum>& of_p, std::vector<Sum>& of_x) {
  Sum dot;
  for (size_t j = 0; j < p.size(); ++j) dot.add(p[j] * of_p[j].value, p[j] * of_p[j].magnitude);
  for (size_t i = 0; i < p.size(); ++i) {
    of_x[i].add(p[i] * (of_p[i].value - dot.value), p[i] * (of_p[i].magnitude + dot.magnitude));
  }
}

void append(const std::vector<Sum>& row, ReferenceGradient& gradient) {
  for (const Sum& each : row) {
    gradient.value.push_back(each.value);
    gradient.magnitude.push_back(each.magnitude);
  }
}

// One token of the backward, from the definition of its weights.
std::vector<Sum> backward_row(const ReferenceBackwardInput& input, int64_t token) {
  const Row x = row_of(input.logits, token, input.num_experts);
  std::vector<size_t> chosen;
  Row grad;
  for (int32_t k = 0; k < input.top_k; ++k) {
    const auto at = static_cast<size_t>(token * input.top_k + k);
    const int64_t id = input.ids[at];
    if (id < 0 || id >= input.num_experts || std::isnan(x[static_cast<size_t>(id)])) continue;
    chosen.push_back(static_cast<size_t>(id));
    grad.push_back(input.scale * input.weights_grad[at]);
  }
  std::vector<Sum> of_x(x.size());
  const bool softmax_of_chosen =
      input.weight_mode == TY_GATE_SOFTMAX_OF_CHOSEN ||
      (input.weight_mode == TY_GATE_RENORMALIZED && input.score == TY_GATE_SOFTMAX && input.epsilon == 0);
  if (softmax_of_chosen) {
    Row own(chosen.size());
    std::transform(chosen.begin(), chosen.end(), own.begin(), [&](size_t expert) { return x[expert]; });
    std::vector<Sum> of_p(chosen.size()), of_own(chosen.size());
    for (size_t k = 0; k < chosen.size(); ++k) of_p[k].add(grad[k]);
    through_softmax(softmax(own), of_p, of_own);
    for (size_t k = 0; k < chosen.size(); ++k) of_x[chosen[k]] = of_own[k];
    return of_x;
  }
  const Row p = softmax(x);
  const auto score = [&](size_t e) {
    return input.score == TY_GATE_SOFTMAX ? p[e] : score_of(input.score, x[e]);
  };
  double divisor = 1;
  Sum dot;
  if (input.weight_mode == TY_GATE_RENORMALIZED) {
    divisor = input.epsilon;
    for (const size_t expert : chosen) divisor += score(expert);
    if (!(divisor > 0)) return of_x;
    for (size_t k = 0; k < chosen.size(); ++k) dot.add(grad[k] * score(chosen[k]) / divisor);
  }
  std::vector<Sum> of_score(x.size());
  for (size_t k = 0; k < chosen.size(); ++k) {
    of_score[chosen[k]].add((grad[k] - dot.value) / divisor, (std::fabs(grad[k]) + dot.magnitude) / divisor);
  }
  if (input.score == TY_GATE_SOFTMAX) {
    through_softmax(p, of_score, of_x);
    return of_x;
  }
  for (const size_t e : chosen) {
    const double slope = slope_of(input.score, x[e]);
    of_x[e].add(slope * of_score[e].value, slope * of_score[e].magnitude);
  }
  return of_x;
}

}  // namespace

ReferenceGradient reference_backward(const ReferenceBackwardInput& input) {
  ReferenceGradient gradient;
  const auto tokens = static_cast<int64_t>(input.logits.size()) / input.num_experts;
  for (int64_t token = 0; token < tokens; ++token) append(backward_row(input, token), gradient);
  return gradient;
}

ReferenceLoss reference_loss(const ReferenceLossInput& input) {
  ReferenceLoss loss;
  const auto experts = static_cast<size_t>(input.num_experts);
  const auto tokens = static_cast<int64_t>(input.logits.size() / experts);
  const double sequences = static_cast<double>(input.sequence_offsets.size()) - 1;
  const double tokens_of_all = input.sequence_offsets.back() - input.sequence_offsets.front();
  size_t sequence = 0;
  for (int64_t token = 0; token < tokens; ++token) {
    while (sequence + 2 < input.sequence_offsets.size() && input.sequence_offsets[sequence + 1] <= token) {
      ++sequence;
    }
    std::vector<Sum> of_x(experts);
    const int32_t begin = input.sequence_offsets[sequence], end = input.sequence_offsets[sequence + 1];
    if (token < begin || token >= end) {
      append(of_x, loss.gradient);
      continue;
    }
    const Row x = row_of(input.logits, token, input.num_experts);
    const Row p = softmax(x);

    // The share of each expert in the token's scores, and L = coefficient / (S T_s) sum of load x share.
    const int32_t* counts = input.counts.data() + sequence * experts;
    const double pairs = std::accumulate(counts, counts + experts, 0.0);
    const double factor = input.balance_coefficient / (sequences * (end - begin));
    Row scores(experts);
    for (size_t e = 0; e < experts; ++e) {
      scores[e] = input.score == TY_GATE_SOFTMAX ? p[e] : std::min(score_of(input.score, x[e]), 0x1p100);
    }
    const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
    if (total > 0 && pairs > 0 && factor != 0) {
      Sum mean;
      for (size_t e = 0; e < experts; ++e) {
        mean.add(input.num_experts * counts[e] / pairs * scores[e] / total);
      }
      loss.balance += factor * mean.value;
      for (size_t e = 0; e < experts; ++e) {
        const double slope = input.score == TY_GATE_SOFTMAX ? p[e] : slope_of(input.score, x[e]) / total;
        const double load = input.num_experts * counts[e] / pairs;
        of_x[e].add(factor * slope * (load - mean.value), std::fabs(factor) * slope * (load + mean.value));
      }
    }

    const double z = log_sum_exp(x);
    if (input.z_coefficient != 0 && z != -kInfinity) {
      loss.z += input.z_coefficient / tokens_of_all * z * z;
      const double highest = std::fabs(z) + std::log(static_cast<double>(experts));
      for (size_t e = 0; e < experts && std::isfinite(z); ++e) {
        const double slope = 2 * input.z_coefficient / tokens_of_all * p[e];
        of_x[e].add(slope * z, std::fabs(slope) * highest);
      }
    }
    append(of_x, loss.gradient);
  }
  return loss;
}

std::vector<int32_t> reference_counts(const std::vector<int64_t>& ids, int32_t top_k,
                                      const std::vector<int32_t>& sequence_offsets, int32_t num_experts) {
  const size_t sequences = sequence_offsets.size() - 1;
  std::vector<int32_t> counts(sequences * static_cast<size_t>(num_experts), 0);
  for (size_t s = 0; s < sequences; ++s) {
    for (int64_t at = int64_t{sequence_offsets[s]} * top_k; at < int64_t{sequence_offsets[s + 1]} * top_k;
         ++at) {
      const int64_t id = ids[static_cast<size_t>(at)];
      if (id >= 0 && id < num_experts)
        ++counts[s * static_cast<size_t>(num_experts) + static_cast<size_t>(id)];
    }
  }
  return counts;
}

ReferenceBalance reference_balance(const std::vector<int64_t>& counts) {
  const auto experts = static_cast<double>(counts.size());
  const double pairs = std::accumulate(counts.begin(), counts.end(), 0.0);
  ReferenceBalance balance;
  double entropy = 0;
  for (const int64_t count : counts) {
    const auto c = static_cast<double>(count);
    balance.direction.push_back((pairs > c * experts) - (pairs < c * experts));
    if (count > 0) entropy -= c / pairs * std::log(c / pairs);
  }
  const double idle = static_cast<double>(std::count(counts.begin(), counts.end(), 0)) / experts;
  if (pairs == 0) {
    balance.statistics = {0, 0, 0, idle};
    return balance;
  }
  const auto over_mean = [&](int64_t count) { return static_cast<double>(count) * experts / pairs; };
  balance.statistics = {over_mean(*std::max_element(counts.begin(), counts.end())),
                        over_mean(*std::min_element(counts.begin(), counts.end())),
                        experts > 1 ? entropy / std::log(experts) : 1, idle};
  return balance;
}

}  // namespace tokenyard::training
