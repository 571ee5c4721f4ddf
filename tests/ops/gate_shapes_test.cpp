// Shapes on the borders of gate's kernels, and rows that once took somebody's slow path.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "gate_expect.hpp"

namespace tokenyard::test {
namespace {

using harness::GateShape;
using harness::Logits;

struct Case {
  std::string name;
  GateShape shape;
  harness::GateOptions options = {};
};

GateShape with_kind(GateShape shape, size_t n) {
  static constexpr Logits kKinds[] = {Logits::kNormal, Logits::kTies, Logits::kAscending, Logits::kSpecial};
  static constexpr ty_dtype kDtypes[] = {TY_BFLOAT16, TY_FLOAT32, TY_FLOAT16};
  shape.logits = kKinds[n % 4];
  shape.dtype = kDtypes[n % 3];
  shape.seed = n;
  return shape;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  // Both sides of what the lanes of each kernel hold, plain and with a bias.
  for (const int32_t experts : {1, 7, 8, 9, 60, 64, 65, 128, 129, 160, 256, 257, 384, 512, 513, 2048, 4096}) {
    for (const int32_t top_k : {1, 6, 8, 10, 32, 33, 64}) {
      if (top_k > experts || (experts > 512 && top_k % 8 != 1 && top_k != 64)) continue;
      GateShape shape = with_kind({.tokens = 5, .experts = experts, .top_k = top_k}, all.size());
      shape.bias = all.size() % 2 == 1;
      shape.score = shape.bias ? TY_GATE_SIGMOID : TY_GATE_SOFTMAX;
      if (all.size() % 4 == 2) shape.weights = TY_GATE_SOFTMAX_OF_CHOSEN;
      all.push_back({"experts_" + std::to_string(experts) + "_top_" + std::to_string(top_k), shape});
    }
  }
  // DeepSeek-V3's choice on rows of every kind.
  const GateShape grouped = deepseek_v3(6);
  static constexpr const char* kNames[] = {"normal", "low",       "high",    "extreme", "ties",
                                           "equal",  "ascending", "special", "nan"};
  for (int kind = 0; kind < 9; ++kind) {
    GateShape shape = grouped;
    shape.logits = static_cast<Logits>(kind);
    all.push_back({std::string("grouped_") + kNames[kind], shape});
    shape.groups = shape.kept_groups = 0;
    shape.bias = false;
    all.push_back({std::string("plain_") + kNames[kind], shape});
  }
  for (const auto& [groups, kept] :
       {std::pair{2, 1}, {4, 2}, {16, 3}, {32, 8}, {64, 4}, {128, 8}, {256, 8}}) {
    GateShape shape = grouped;
    shape.groups = groups;
    shape.kept_groups = kept;
    shape.group_score = TY_GATE_GROUP_MAX;
    all.push_back({"groups_" + std::to_string(groups), shape});
    shape.bias = false;
    shape.score = TY_GATE_SOFTMAX;
    shape.weights = TY_GATE_RAW;
    all.push_back({"unbiased_groups_" + std::to_string(groups), shape});
  }
  // DeepSeek-V2's choice: groups on no power of two of lanes.
  for (int kind = 0; kind < 9; ++kind) {
    for (const int64_t tokens : {6, 37}) {  // a warp a token, and a few lanes
      GateShape shape{.tokens = tokens, .experts = 160, .top_k = 6, .groups = 8, .kept_groups = 3};
      shape.dtype = kind % 2 == 0 ? TY_BFLOAT16 : TY_FLOAT32;
      shape.logits = static_cast<Logits>(kind);
      all.push_back({std::string("groups_of_twenty_") + kNames[kind] + "_" + std::to_string(tokens), shape});
    }
  }
  for (const int misalignment : {1, 2, 3}) {
    GateShape shape = grouped;
    shape.row_stride = 256 + misalignment;
    all.push_back({"misaligned_by_" + std::to_string(misalignment), shape, {.misalignment = misalignment}});
  }
  return all;
}

class GateShapes : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(GateShapes, AreRight) {
  const auto& [device, c] = GetParam();
  TY_SKIP_IF_MISSING(device);
  expect_gate_right(device, harness::draw(c.shape), c.options);
}

INSTANTIATE_TEST_SUITE_P(Gate, GateShapes,
                         testing::Combine(testing::ValuesIn(kAllDevices), testing::ValuesIn(cases())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace tokenyard::test
