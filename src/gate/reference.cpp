#include "gate/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace tokenyard::gate {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();
constexpr double kHighest = std::numeric_limits<double>::infinity();

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double score_of(ty_gate_score score, double x) {
  if (score == TY_GATE_SIGMOID) return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  return x == kHighest ? std::ldexp(1, 121) : std::sqrt(softplus(x));
}

// e^x / sum of e^x; NaN takes no part, and infinities share alike.
std::vector<double> softmax(const std::vector<double>& x) {
  double highest = kLowest;
  for (const double each : x) {
    if (each > highest) highest = each;
  }
  std::vector<double> e(x.size(), 0.0);
  if (highest == kLowest) return e;
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    e[i] = x[i] == highest ? 1 : std::exp(x[i] - highest);
    total += e[i];
  }
  for (double& each : e) each /= total;
  return e;
}

std::vector<double> logits_of(const ReferenceInput& input, int64_t token) {
  const auto row = input.logits.begin() + token * input.num_experts;
  return {row, row + input.num_experts};
}

std::vector<double> scores_of(const ReferenceInput& input, const std::vector<double>& logits) {
  if (input.score == TY_GATE_SOFTMAX) return softmax(logits);
  std::vector<double> scores(logits.size());
  std::transform(logits.begin(), logits.end(), scores.begin(),
                 [&](double x) { return std::isnan(x) ? 0 : score_of(input.score, x); });
  return scores;
}

double at(const std::vector<double>& values, int32_t i) { return values[static_cast<size_t>(i)]; }

// The `count` highest of the values, by descending value, then ascending index.
std::vector<int32_t> highest(const std::vector<double>& values, int32_t count) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return at(values, a) != at(values, b) ? at(values, a) > at(values, b) : a < b;
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

}  // namespace

ReferenceRow reference_row(const ReferenceInput& input, int64_t token) {
  ReferenceRow row;
  const std::vector<double> logits = logits_of(input, token);
  row.score = scores_of(input, logits);
  for (size_t e = 0; e < logits.size(); ++e) {
    const double value = input.bias.empty() ? logits[e] : row.score[e] + input.bias[e];
    row.selection.push_back(std::isnan(logits[e]) || std::isnan(value) ? kLowest : value);
  }
  const int32_t size = input.num_experts / input.num_groups;
  for (int32_t group = 0; group < input.num_groups; ++group) {
    std::vector<double> members;
    for (int32_t e = group * size; e < (group + 1) * size; ++e) {
      const bool by_score = input.bias.empty() && input.group_score == TY_GATE_GROUP_TOP2;
      members.push_back(by_score && !std::isnan(at(logits, e)) ? at(row.score, e) : at(row.selection, e));
    }
    std::sort(members.rbegin(), members.rend());
    double value = members[0];
    if (input.group_score == TY_GATE_GROUP_TOP2 && size > 1) {
      value = members[1] == kLowest ? kLowest : members[0] + members[1];
    }
    row.group_score.push_back(value);
  }
  row.kept_groups = highest(row.group_score, input.kept_groups);
  std::sort(row.kept_groups.begin(), row.kept_groups.end());
  row.chosen = reference_choice(input, row, row.kept_groups);
  return row;
}

std::vector<int32_t> reference_choice(const ReferenceInput& input, const ReferenceRow& row,
                                      const std::vector<int32_t>& kept_groups) {
  std::vector<double> masked(row.selection.size(), kLowest);
  const int32_t size = input.num_experts / input.num_groups;
  for (const int32_t group : kept_groups) {
    const auto from = row.selection.begin() + group * size;
    std::copy(from, from + size, masked.begin() + group * size);
  }
  return highest(masked, input.top_k);
}

std::vector<double> reference_weights(const ReferenceInput& input, int64_t token,
                                      const std::vector<int32_t>& chosen) {
  const std::vector<double> logits = logits_of(input, token);
  const std::vector<double> scores = scores_of(input, logits);
  std::vector<double> weights, of_chosen;
  for (const int32_t expert : chosen) {
    weights.push_back(at(scores, expert));
    of_chosen.push_back(at(logits, expert));
  }
  if (input.weight_mode == TY_GATE_SOFTMAX_OF_CHOSEN ||
      (input.weight_mode == TY_GATE_RENORMALIZED && input.score == TY_GATE_SOFTMAX && input.epsilon == 0)) {
    weights = softmax(of_chosen);  // of scores, this is the same but for underflow
  } else if (input.weight_mode == TY_GATE_RENORMALIZED) {
    const double divisor = std::accumulate(weights.begin(), weights.end(), 0.0) + input.epsilon;
    for (double& weight : weights) weight = divisor > 0 ? weight / divisor : 0;
  }
  for (double& weight : weights) weight *= input.scale;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double shared = input.shared_weight * (input.shared_mode == TY_GATE_SHARED_OF_SUM ? sum : 1);
  weights.insert(weights.end(), static_cast<size_t>(input.num_shared_experts), shared);
  return weights;
}

int32_t reference_physical(const ReferenceInput& input, int64_t token, int32_t expert) {
  if (input.replicas.empty()) return expert;
  const auto columns = static_cast<int32_t>(input.replicas.size()) / input.num_experts;
  // The finaliser of MurmurHash3.
  auto hash = static_cast<uint32_t>(token);
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  hash ^= hash >> 16;
  const int32_t count = std::clamp(input.num_replicas[static_cast<size_t>(expert)], 1, columns);
  const auto which = static_cast<int32_t>(static_cast<uint64_t>(hash) * static_cast<uint64_t>(count) >> 32);
  return input
      .replicas[static_cast<size_t>(expert) * static_cast<size_t>(columns) + static_cast<size_t>(which)];
}

ReferenceOutput reference(const ReferenceInput& input) {
  ReferenceOutput out;
  out.counts.assign(static_cast<size_t>(input.num_experts), 0);
  out.physical_counts.assign(static_cast<size_t>(input.num_physical_experts), 0);
  const auto tokens = static_cast<int64_t>(input.logits.size()) / input.num_experts;
  const size_t columns = static_cast<size_t>(input.top_k) + static_cast<size_t>(input.num_shared_experts);
  for (int64_t token = 0; token < tokens; ++token) {
    if (token >= input.num_real_tokens) {
      out.ids.insert(out.ids.end(), columns, -1);
      out.weights.insert(out.weights.end(), columns, 0.0);
      continue;
    }
    const ReferenceRow row = reference_row(input, token);
    for (const int32_t expert : row.chosen) {
      const int32_t physical = reference_physical(input, token, expert);
      out.ids.push_back(physical);
      ++out.counts[static_cast<size_t>(expert)];
      if (physical >= 0 && physical < input.num_physical_experts) {
        ++out.physical_counts[static_cast<size_t>(physical)];
      }
    }
    for (int32_t i = 0; i < input.num_shared_experts; ++i) out.ids.push_back(input.num_physical_experts + i);
    const std::vector<double> weights = reference_weights(input, token, row.chosen);
    out.weights.insert(out.weights.end(), weights.begin(), weights.end());
  }
  return out;
}

}  // namespace tokenyard::gate
