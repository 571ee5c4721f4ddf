// Small inputs with answers worked out by an implementation of the contract that shares nothing with this
// repository: tests/data/align_cases.json.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "expect.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

using nlohmann::json;

const json& recorded_cases() {
  static const json cases = json::parse(std::ifstream(TOKENYARD_TEST_DATA "/align_cases.json"));
  return cases;
}

std::vector<size_t> indices() {
  std::vector<size_t> all(recorded_cases().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

harness::AlignProblem problem_of(const json& c) {
  harness::AlignShape shape;
  shape.tokens = static_cast<int64_t>(c["ids"].size());
  shape.top_k = c["ids"].empty() ? 1 : static_cast<int32_t>(c["ids"][0].size());
  shape.experts = c["num_experts"];
  shape.block = c["block_size"];
  shape.int64_ids = c.value("dtype", "int32") == "int64";
  shape.row_stride = c.value("row_stride", int64_t{0});
  shape.local_experts = c.value("local", 0);
  std::vector<int64_t> ids;
  for (const json& row : c["ids"]) {
    for (const json& id : row) ids.push_back(id);
  }
  return harness::from_ids(shape, std::move(ids), c.value("expert_map", std::vector<int32_t>()));
}

// The case holds the outputs up to num_padded; the contract says what stands beyond.
harness::AlignOutputs outputs_of(const json& c, const harness::AlignProblem& problem) {
  const json& want = c["want"];
  harness::AlignOutputs outputs{.sorted_pair_ids = want["sorted_pair_ids"],
                                .block_expert = want["block_expert"],
                                .counts = want["counts"],
                                .offsets = want["offsets"],
                                .inverse = want["inverse"],
                                .block_rows = want["block_rows"],
                                .num_padded = want["num_padded"],
                                .num_dropped = want["num_dropped"]};
  const auto block = static_cast<size_t>(problem.shape.block);
  const size_t capacity = static_cast<size_t>(problem.capacity);
  outputs.sorted_pair_ids.resize(capacity, want["pad_value"]);
  outputs.block_expert.resize((capacity + block - 1) / block, -1);
  outputs.block_rows.resize((capacity + block - 1) / block, 0);
  return outputs;
}

class RecordedCases : public testing::TestWithParam<std::tuple<std::string, size_t>> {};

TEST_P(RecordedCases, AreRight) {
  const auto& [device, index] = GetParam();
  TY_SKIP_IF_MISSING(device);
  const json& c = recorded_cases()[index];
  const harness::AlignProblem problem = problem_of(c);
  const harness::AlignOutputs want = outputs_of(c, problem);
  EXPECT_EQ(harness::difference(harness::expected(problem), want), "") << c["why"];
  EXPECT_EQ(harness::broken_promise(problem, want), "");
  expect_right(device, problem);
}

INSTANTIATE_TEST_SUITE_P(
    Align, RecordedCases, testing::Combine(testing::ValuesIn(kAllDevices), testing::ValuesIn(indices())),
    [](const auto& info) {
      return std::get<0>(info.param) + "_" +
             recorded_cases()[std::get<1>(info.param)]["name"].template get<std::string>();
    });

}  // namespace
}  // namespace tokenyard::test
