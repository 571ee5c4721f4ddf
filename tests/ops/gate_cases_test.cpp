// Small inputs after public bug reports, with answers worked out by an implementation of the contract that
// shares nothing with this repository: tests/data/gate_cases.json.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "gate_expect.hpp"

namespace tokenyard::test {
namespace {

using nlohmann::json;

const json& recorded_cases() {
  static const json cases = json::parse(std::ifstream(TOKENYARD_TEST_DATA "/gate_cases.json"));
  return cases;
}

std::vector<size_t> indices() {
  std::vector<size_t> all(recorded_cases().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

float number(const json& value) {
  if (!value.is_string()) return value;
  if (value == "nan") return std::numeric_limits<float>::quiet_NaN();
  return value == "inf" ? HUGE_VALF : -HUGE_VALF;
}

harness::GateProblem problem_of(const json& c) {
  const json& options = c["options"];
  harness::GateShape shape;
  shape.tokens = static_cast<int64_t>(c["logits"].size());
  shape.experts = static_cast<int32_t>(c["logits"][0].size());
  shape.top_k = c["k"];
  if (c["scoring"] == "sigmoid") shape.score = TY_GATE_SIGMOID;
  if (c["scoring"] == "sqrtsoftplus") shape.score = TY_GATE_SQRT_SOFTPLUS;
  shape.bias = options.contains("bias");
  shape.groups = options.value("groups", 0);
  shape.kept_groups = options.value("keep_groups", 0);
  if (options.value("group_score", "max") == "top2") shape.group_score = TY_GATE_GROUP_TOP2;
  if (options.value("renorm", false)) {
    shape.weights = TY_GATE_RENORMALIZED;
    shape.epsilon = 1e-20f;
  }
  if (options.value("softmax_after", false)) shape.weights = TY_GATE_SOFTMAX_OF_CHOSEN;
  shape.scale = options.value("scale", 1.0f);
  harness::GateProblem problem{shape, {}, {}, {}, {}};
  for (const json& row : c["logits"]) {
    for (const json& logit : row) problem.logits.push_back(number(logit));
  }
  if (shape.bias) problem.bias = options["bias"].get<std::vector<float>>();
  return problem;
}

class GateCases : public testing::TestWithParam<std::tuple<std::string, size_t>> {};

TEST_P(GateCases, AreRight) {
  const auto& [device, index] = GetParam();
  TY_SKIP_IF_MISSING(device);
  const json& c = recorded_cases()[index];
  SCOPED_TRACE(c["why"].get<std::string>());
  const harness::GateProblem problem = problem_of(c);
  expect_gate_right(device, problem);
  if (device == kReference) return;
  const harness::GateOutputs got = gate_outputs(device, problem);
  size_t i = 0;
  for (size_t token = 0; token < c["want_ids"].size(); ++token) {
    for (size_t k = 0; k < c["want_ids"][token].size(); ++k, ++i) {
      EXPECT_EQ(got.ids[i], c["want_ids"][token][k]) << token << ", " << k;
      const auto want = c["want_weights"][token][k].get<float>();
      EXPECT_NEAR(got.weights[i], want, 1e-5 * std::fabs(want)) << token << ", " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gate, GateCases, testing::Combine(testing::ValuesIn(kAllDevices), testing::ValuesIn(indices())),
    [](const auto& info) {
      return std::get<0>(info.param) + "_" +
             recorded_cases()[std::get<1>(info.param)]["name"].template get<std::string>();
    });

}  // namespace
}  // namespace tokenyard::test
