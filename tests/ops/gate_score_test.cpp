// The score functions against long double, over logits of every size; and the CPU's fast way of taking them,
// bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gate/cpu_scores.hpp"
#include "gate/quick_score.hpp"
#include "gate/score.hpp"

namespace tokenyard::gate {
namespace {

constexpr uint32_t kStep = 10007;  // every so manieth float32 number

// The largest error in units of the last place, where the true value is a normal number.
template <class Function, class Truth>
double worst_error(float low, float high, Function function, Truth truth) {
  double worst = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x >= low && x <= high)) continue;
    const long double want = truth(static_cast<long double>(x));
    if (want < 0x1p-126L) continue;
    int exponent = 0;
    std::frexp(want, &exponent);
    const long double ulps = std::fabs(function(x) - want) / std::ldexp(1.0L, exponent - 24);
    worst = std::max(worst, static_cast<double>(ulps));
  }
  return worst;
}

TEST(GateScore, ExponentialIsCloseToTheTruth) {
  EXPECT_LT(worst_error(-87, 0, exp_of_negative, [](long double x) { return std::exp(x); }), 1.0);
}

TEST(GateScore, SigmoidIsCloseToTheTruth) {
  EXPECT_LT(worst_error(-87, 200, sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }), 2.3);
}

TEST(GateScore, SqrtSoftplusIsCloseToTheTruth) {
  EXPECT_LT(worst_error(-174, 1e30f, sqrt_softplus,
                        [](long double x) {
                          return std::sqrt(std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))));
                        }),
            1.9);
}

// With an exponential and a reciprocal that are as good as float32 allows: devices' own are worse by the 2
// and 1 units that a port promises.
struct Rounded {
  static float exp2(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }
  static float reciprocal(float x) { return 1.0f / x; }
};

TEST(GateScore, QuickScoresAreCloseToTheTruth) {
  Rounded gpu;
  const QuickScores<float, Rounded> scores(gpu);
  const auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst_error(-87, 200, [&](float x) { return scores.sigmoid(x); }, sigmoid), 3.0);
  EXPECT_LT(worst_error(
                -87, 0, [&](float x) { return scores.exp_of_distance(x, 0); },
                [](long double x) { return std::exp(x); }),
            3.0);
  double worst = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = port::to_float(static_cast<port::bfloat16>(bits));
    if (!(x >= -87 && x <= 200)) continue;
    const long double want = sigmoid(x);
    worst =
        std::max(worst, static_cast<double>(std::fabs(quick_sigmoid<port::bfloat16>(gpu, x) - want) / want));
  }
  EXPECT_LT(worst, 3.0 * 0x1p-23);
}

TEST(GateScore, EndsOfTheQuickRange) {
  Rounded gpu;
  const QuickScores<float, Rounded> scores(gpu);
  const float nan = std::bit_cast<float>(0x7fc00000u);
  EXPECT_EQ(scores.sigmoid(kInfinity), 1);
  EXPECT_EQ(scores.sigmoid(3e38f), 1);
  EXPECT_EQ(scores.sigmoid(-kInfinity), 0);
  EXPECT_EQ(scores.sigmoid(nan), 0);
  EXPECT_EQ(scores.sqrt_softplus(nan), 0);
  EXPECT_EQ(scores.exp_of_distance(kInfinity, kInfinity), 1);
  EXPECT_EQ(scores.exp_of_distance(1, kInfinity), 0);
  EXPECT_EQ(scores.exp_of_distance(-kInfinity, 1), 0);
  EXPECT_EQ(scores.exp_of_distance(-kInfinity, -kInfinity), 0);
  EXPECT_EQ(quick_term(gpu, kInfinity, kInfinity), 1);
  EXPECT_EQ(quick_term(gpu, 1, kInfinity), 0);
  EXPECT_EQ(quick_term(gpu, nan, 1), 0);
  EXPECT_EQ(scores.quotient(0, 0), 0);
  EXPECT_EQ(scores.quotient(0x1p-126f, 0x1p-126f), 1);
}

TEST(GateScore, EndsOfTheRange) {
  EXPECT_EQ(exp_of_negative(0), 1);
  EXPECT_EQ(exp_of_negative(-kInfinity), 0);
  EXPECT_EQ(exp_of_negative(-103), 0x1p-149f);
  EXPECT_EQ(sigmoid(kInfinity), 1);
  EXPECT_EQ(sigmoid(-kInfinity), 0);
  EXPECT_EQ(sqrt_softplus(-kInfinity), 0);
  EXPECT_EQ(sqrt_softplus(kInfinity), kSqrtSoftplusOfInfinity);
  EXPECT_EQ(exp_of_distance(kInfinity, kInfinity), 1);
  EXPECT_EQ(exp_of_distance(1, kInfinity), 0);
  EXPECT_EQ(exp_of_distance(-kInfinity, -kInfinity), 0);
}

TEST(GateScore, TheFastWayHasTheSameBits) {
  std::vector<float> logits;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (x == x) logits.push_back(x);
  }
  constexpr float kHighest = 3.5f;
  std::vector<float> scores(logits.size());
  const auto expect_bits = [&](auto score) {
    for (size_t i = 0; i < logits.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(scores[i]), std::bit_cast<uint32_t>(score(logits[i]))) << logits[i];
    }
  };
  score_row(TY_GATE_SIGMOID, logits.data(), logits.size(), 0, scores.data());
  expect_bits(sigmoid);
  score_row(TY_GATE_SQRT_SOFTPLUS, logits.data(), logits.size(), 0, scores.data());
  expect_bits(sqrt_softplus);
  std::erase_if(logits, [](float x) { return x > kHighest; });
  score_row(TY_GATE_SOFTMAX, logits.data(), logits.size(), kHighest, scores.data());
  expect_bits([](float x) { return exp_of_distance(x, kHighest); });
}

}  // namespace
}  // namespace tokenyard::gate
