// balance on every device, against the reference; and what it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/random.hpp"
#include "training_run.hpp"

namespace tokenyard::test {
namespace {

using harness::BalanceOutputs;
using harness::BalanceProblem;

std::vector<int64_t> draw_counts(size_t experts, int64_t most, uint64_t seed) {
  harness::Random random(seed);
  std::vector<int64_t> counts(experts);
  for (int64_t& count : counts) count = random.one_in(4) ? 0 : random.below(most);
  return counts;
}

class Balance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }

  void expect_right(const std::vector<int64_t>& counts, bool int64_counts) const {
    SCOPED_TRACE(testing::Message() << counts.size() << " experts, int64: " << int64_counts);
    BalanceProblem problem{.counts = counts, .int64_counts = int64_counts, .bias = {}};
    for (size_t e = 0; e < counts.size(); ++e) problem.bias.push_back(static_cast<float>(e % 7) / 16);
    const BalanceOutputs got = balance_on(device, problem);
    EXPECT_EQ(harness::broken_promise(problem, got), "");
    EXPECT_EQ(harness::difference(got, balance_on("cpu", problem)), "");
  }

  // Where float64 cannot take the mean either: of counts c + d, that of d has the same place among them.
  void expect_right_signs(const std::vector<int64_t>& counts) const {
    const int64_t least = *std::min_element(counts.begin(), counts.end());
    std::vector<int64_t> small;
    for (const int64_t count : counts) small.push_back(count - least);
    const training::ReferenceBalance want = training::reference_balance(small);
    const BalanceOutputs got = balance_on(
        device,
        {.counts = counts, .int64_counts = true, .rate = 1, .bias = std::vector<float>(counts.size(), 0)});
    for (size_t e = 0; e < counts.size(); ++e) EXPECT_EQ(got.bias[e], want.direction[e]) << e;
  }

  const std::string device = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Training, Balance, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

TEST_P(Balance, MovesEveryBiasAgainstItsLoad) {
  for (const size_t experts : {1U, 2U, 31U, 32U, 33U, 64U, 65U, 256U, 257U, 1000U, 4095U, 4096U}) {
    expect_right(draw_counts(experts, 1000, experts), experts % 2 == 0);
  }
}

TEST_P(Balance, EvenAndEmptyLoads) {
  for (const size_t experts : {1U, 8U, 300U}) {
    expect_right(std::vector<int64_t>(experts, 0), false);
    expect_right(std::vector<int64_t>(experts, 77), true);
    std::vector<int64_t> one(experts, 0);
    one.back() = 5;
    expect_right(one, false);
  }
}

// The mean is a fraction that no float holds: signs are taken of integers.
TEST_P(Balance, CountsBeyondFloats) {
  std::vector<int64_t> counts = draw_counts(256, int64_t{1} << 32, 1);
  for (int64_t& count : counts) count = (int64_t{1} << 54) + count % 3;
  expect_right_signs(counts);
  counts.assign(3, int64_t{1} << 54);
  counts[1] += 1;
  expect_right_signs(counts);
}

TEST_P(Balance, StatisticsAlone) {
  const BalanceOutputs got = balance_on(device, {.counts = {2, 0, 1, 1}, .bias = {}});
  EXPECT_EQ(got.statistics[TY_LOAD_MAX], 2);
  EXPECT_EQ(got.statistics[TY_LOAD_MIN], 0);
  EXPECT_NEAR(got.statistics[TY_LOAD_ENTROPY], 0.75, 1e-6);  // 1.5 bits of 2
  EXPECT_EQ(got.statistics[TY_LOAD_IDLE], 0.25f);
}

}  // namespace
}  // namespace tokenyard::test
