// Presets against the formulas of their papers, each written down here on its own, in float64.
#include "tokenyard/gate_presets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "gate_expect.hpp"

namespace tokenyard::test {
namespace {

using Row = std::vector<double>;

struct Choice {
  std::vector<size_t> experts;
  Row weights;
};

std::vector<size_t> best(const Row& values, size_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

Row at(const Row& values, const std::vector<size_t>& indices) {
  Row taken;
  for (const size_t i : indices) taken.push_back(values[i]);
  return taken;
}

double sum(const Row& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Row each(const Row& values, const std::function<double(double)>& function) {
  Row out;
  for (const double value : values) out.push_back(function(value));
  return out;
}

Row softmax(const Row& logits) {
  const Row e = each(logits, [](double x) { return std::exp(x); });
  return each(e, [total = sum(e)](double x) { return x / total; });
}

Row normalized(const Row& values) {
  return each(values, [total = sum(values)](double x) { return x / total; });
}

Row times(const Row& values, double factor) {
  return each(values, [factor](double x) { return x * factor; });
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Row plus(const Row& a, const Row& b) {
  Row out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] + b[i]);
  return out;
}

// All but the best `kept` of `groups` groups at -inf; a group's value is the sum of its `of` best.
Row of_best_groups(const Row& values, size_t groups, size_t kept, size_t of) {
  const size_t size = values.size() / groups;
  Row group_values;
  for (size_t g = 0; g < groups; ++g) {
    const auto first = values.begin() + static_cast<ptrdiff_t>(g * size);
    const Row members(first, first + static_cast<ptrdiff_t>(size));
    group_values.push_back(sum(at(members, best(members, of))));
  }
  Row masked(values.size(), -HUGE_VAL);
  for (const size_t g : best(group_values, kept)) {
    for (size_t e = g * size; e < (g + 1) * size; ++e) masked[e] = values[e];
  }
  return masked;
}

// DeepSeek-V3's gate with other scores, groups and factor.
Choice without_auxiliary_loss(const Row& scores, const Row& selection, size_t top_k, double factor) {
  const std::vector<size_t> chosen = best(selection, top_k);
  return {chosen, times(normalized(at(scores, chosen)), factor)};
}

Choice softmax_then_top_k(const Row& x, size_t top_k, bool renormalize) {
  const Row scores = softmax(x);
  const std::vector<size_t> chosen = best(scores, top_k);
  return {chosen, renormalize ? normalized(at(scores, chosen)) : at(scores, chosen)};
}

Choice top_k_then_softmax(const Row& x, size_t top_k) {
  const std::vector<size_t> chosen = best(x, top_k);
  return {chosen, softmax(at(x, chosen))};
}

Choice formula(const std::string& model, const Row& x, const Row& bias) {
  if (model == "mixtral-8x7b") return top_k_then_softmax(x, 2);
  if (model == "olmoe-1b-7b") return softmax_then_top_k(x, 8, false);
  if (model == "qwen3-moe") return softmax_then_top_k(x, 8, true);
  if (model == "qwen3-next-80b-a3b") return softmax_then_top_k(x, 10, true);
  if (model == "deepseek-v2") {
    const Row scores = softmax(x);
    const std::vector<size_t> chosen = best(of_best_groups(scores, 8, 3, 1), 6);
    return {chosen, times(at(scores, chosen), 16)};
  }
  if (model == "deepseek-v3") {
    const Row scores = each(x, sigmoid);
    return without_auxiliary_loss(scores, of_best_groups(plus(scores, bias), 8, 4, 2), 8, 2.5);
  }
  if (model == "deepseek-v4-flash") {
    const Row scores = each(x, [](double v) { return std::sqrt(std::log1p(std::exp(v))); });
    return without_auxiliary_loss(scores, plus(scores, bias), 6, 1.5);
  }
  if (model == "kimi-k2") {
    const Row scores = each(x, sigmoid);
    return without_auxiliary_loss(scores, plus(scores, bias), 8, 2.827);
  }
  if (model == "glm-4.5") {
    const Row scores = each(x, sigmoid);
    return without_auxiliary_loss(scores, plus(scores, bias), 8, 2.5);
  }
  if (model == "gpt-oss-120b" || model == "gpt-oss-20b") return top_k_then_softmax(x, 4);
  if (model == "llama-4-maverick") {
    const std::vector<size_t> chosen = best(x, 1);
    return {chosen, each(at(x, chosen), sigmoid)};
  }
  return {};
}

harness::GateProblem draw(const GatePreset& preset) {
  return harness::draw(harness::GateShape{.tokens = 24,
                                          .experts = preset.num_experts,
                                          .top_k = preset.top_k,
                                          .score = preset.score,
                                          .bias = preset.bias,
                                          .groups = preset.num_groups,
                                          .kept_groups = preset.kept_groups,
                                          .group_score = preset.group_score,
                                          .weights = preset.weight_mode,
                                          .epsilon = preset.epsilon,
                                          .scale = preset.scale,
                                          .seed = 1});
}

class GatePresets : public testing::TestWithParam<GatePreset> {};

TEST_P(GatePresets, AreTheFormulasOfTheirPapers) {
  const GatePreset& preset = GetParam();
  const harness::GateProblem problem = draw(preset);
  const harness::GateOutputs got = gate_outputs("cpu", problem);
  const Row bias(problem.bias.begin(), problem.bias.end());
  size_t i = 0;
  for (int64_t token = 0; token < problem.shape.tokens; ++token) {
    const auto row = problem.logits.begin() + token * preset.num_experts;
    const Choice want = formula(std::string(preset.name), Row(row, row + preset.num_experts), bias);
    ASSERT_EQ(want.experts.size(), static_cast<size_t>(preset.top_k)) << "no formula for this preset";
    for (size_t k = 0; k < want.experts.size(); ++k, ++i) {
      EXPECT_EQ(got.ids[i], static_cast<int64_t>(want.experts[k])) << token << ", " << k;
      EXPECT_NEAR(got.weights[i], want.weights[k], 1e-5 * want.weights[k]) << token << ", " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gate, GatePresets, testing::ValuesIn(kGatePresets), [](const auto& info) {
  std::string name(info.param.name);
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(GatePresets, AreFoundByName) {
  ASSERT_NE(find_gate_preset("kimi-k2"), nullptr);
  EXPECT_EQ(find_gate_preset("kimi-k2")->num_experts, 384);
  EXPECT_EQ(find_gate_preset("kimi"), nullptr);
}

}  // namespace
}  // namespace tokenyard::test
