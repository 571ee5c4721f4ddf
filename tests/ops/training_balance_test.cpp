// balance on every device, against the reference; and what it is for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "device.hpp"
#include "harness/random.hpp"
#include "training_run.hpp"

namespace tokenyard::test {
namespace {

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
    constexpr float kRate = 0.001f;
    SCOPED_TRACE(testing::Message() << counts.size() << " experts, int64: " << int64_counts);
    std::vector<float> bias(counts.size());
    for (size_t e = 0; e < bias.size(); ++e) bias[e] = static_cast<float>(e % 7) / 16;
    const BalanceOutputs got = balance_on(device, counts, int64_counts, kRate, bias);
    const training::ReferenceBalance want = training::reference_balance(counts);
    for (size_t e = 0; e < bias.size(); ++e) {
      ASSERT_EQ(got.bias[e], bias[e] + kRate * static_cast<float>(want.direction[e]))
          << e << ": " << counts[e];
    }
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(got.statistics[i], want.statistics[i], 2e-6 * std::max(1.0, want.statistics[i])) << i;
    }
    const BalanceOutputs on_cpu = balance_on("cpu", counts, int64_counts, kRate, bias);
    EXPECT_EQ(difference(got.bias, on_cpu.bias), "");
    EXPECT_EQ(difference(got.statistics, on_cpu.statistics), "");
  }

  // Where float64 cannot take the mean either: of counts c + d, that of d has the same place among them.
  void expect_right_signs(const std::vector<int64_t>& counts) const {
    const int64_t least = *std::min_element(counts.begin(), counts.end());
    std::vector<int64_t> small;
    for (const int64_t count : counts) small.push_back(count - least);
    const training::ReferenceBalance want = training::reference_balance(small);
    const BalanceOutputs got = balance_on(device, counts, true, 1, std::vector<float>(counts.size(), 0));
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
  const BalanceOutputs got = balance_on(device, {2, 0, 1, 1}, false, 1, {});
  EXPECT_EQ(got.statistics[TY_LOAD_MAX], 2);
  EXPECT_EQ(got.statistics[TY_LOAD_MIN], 0);
  EXPECT_NEAR(got.statistics[TY_LOAD_ENTROPY], 0.75, 1e-6);  // 1.5 bits of 2
  EXPECT_EQ(got.statistics[TY_LOAD_IDLE], 0.25f);
}

}  // namespace
}  // namespace tokenyard::test
