// router_loss on every device: the CPU against the float64 reference, kernels against the CPU to the last
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "training_run.hpp"

namespace tokenyard::test {
namespace {

using harness::difference;
using harness::GateShape;
using harness::Logits;
using harness::LossOutputs;
using harness::LossProblem;

// sequences: 0 for one without offsets.
LossProblem draw_loss(const GateShape& shape, int32_t sequences) {
  return harness::draw(harness::TrainingShape{.gate = shape, .sequences = sequences});
}

void expect_loss_right(const std::string& device, const LossProblem& problem, int misalignment = 0) {
  SCOPED_TRACE(problem.chosen.forward.shape.command());
  const LossOutputs on_cpu = losses_on("cpu", problem, {.misalignment = misalignment});
  if (device == "cpu") {
    EXPECT_EQ(harness::broken_promise(problem, on_cpu), "");
  } else {
    EXPECT_EQ(difference(losses_on(device, problem, {.misalignment = misalignment}), on_cpu), "");
  }
}

class RouterLoss : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }
  const std::string device = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Training, RouterLoss, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

// Both sides of what each team of lanes holds, with scores, types and numbers of sequences in turn.
TEST_P(RouterLoss, ShapesOfEveryKernel) {
  int n = 0;
  for (const int32_t experts : {1, 8, 64, 65, 160, 256, 257, 512, 513, 4096}) {
    for (const int64_t tokens : {1, 33, 70}) {
      if (tokens * experts > 40'000) continue;
      GateShape shape{.tokens = tokens, .experts = experts, .top_k = std::min(experts, 6)};
      shape.score = static_cast<ty_gate_score>(n % 3);
      shape.dtype = static_cast<ty_dtype>(TY_FLOAT32 + n / 3 % 3);
      shape.int64_ids = n % 2 == 1;
      shape.shared = n % 4 == 1 ? 2 : 0;
      shape.seed = static_cast<uint64_t>(n);
      LossProblem problem = draw_loss(shape, n % 4);
      if (n % 3 == 0) problem.given_counts = problem.counts();
      expect_loss_right(device, problem);
      ++n;
    }
  }
}

TEST_P(RouterLoss, LogitsOfEveryKindAndEachLossAlone) {
  for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS}) {
    for (const Logits logits :
         {Logits::kNormal, Logits::kLow, Logits::kHigh, Logits::kTies, Logits::kNan, Logits::kEqual}) {
      LossProblem problem =
          draw_loss({.tokens = 40, .experts = 48, .top_k = 4, .score = score, .logits = logits}, 2);
      expect_loss_right(device, problem);
      problem.z_coefficient = 0;
      expect_loss_right(device, problem);
      problem.z_coefficient = 0.5f;
      problem.balance_coefficient = 0;
      problem.given_counts = problem.counts();
      expect_loss_right(device, problem);
    }
  }
}

TEST_P(RouterLoss, RowsWithGapsAndAnyAlignment) {
  for (const ty_dtype dtype : {TY_FLOAT32, TY_BFLOAT16, TY_FLOAT16}) {
    for (const int misalignment : {0, 1, 3}) {
      const GateShape shape{
          .tokens = 35, .experts = 96, .top_k = 4, .dtype = dtype, .row_stride = 96 + misalignment * 5};
      expect_loss_right(device, draw_loss(shape, 3), misalignment);
    }
  }
}

// NaN counts for nothing; an infinite z is an infinite loss without a slope, and what is not infinite has
// one.
TEST_P(RouterLoss, NanAndInfinities) {
  for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS}) {
    LossProblem problem = draw_loss({.tokens = 40, .experts = 2048, .top_k = 4, .score = score}, 0);
    std::vector<float>& logits = problem.chosen.forward.logits;
    logits[0] = std::nanf("");
    logits[2048 + 1] = -HUGE_VALF;
    expect_loss_right(device, problem);
    logits[2 * 2048 + 2] = HUGE_VALF;
    std::fill(logits.begin() + 3 * 2048, logits.begin() + 4 * 2048 - 5, HUGE_VALF);
    const LossOutputs got = losses_on(device, problem);
    const training::ReferenceLoss want = harness::reference(problem);
    EXPECT_EQ(got.gradient[0], 0);
    EXPECT_NEAR(got.losses[0], want.balance, 1e-5 * want.balance);
    EXPECT_EQ(got.losses[1], HUGE_VALF);
    EXPECT_EQ(difference(got.gradient, want.gradient, TY_FLOAT32), "");
  }
}

// Offsets are the caller's, on the device: whatever they hold, nothing is read or written out of bounds.
TEST_P(RouterLoss, AnyOffsetsAreSafe) {
  for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID}) {
    LossProblem problem = draw_loss({.tokens = 40, .experts = 48, .top_k = 4, .score = score}, 0);
    problem.sequence_offsets = {0, 40};
    problem.given_counts = problem.counts();
    const LossOutputs whole = losses_on(device, problem);
    for (const auto& offsets :
         {std::vector<int32_t>{-7, 1'000'000}, {0, 2'000'000'000}, {-2'000'000'000, 40}}) {
      problem.sequence_offsets = offsets;
      EXPECT_EQ(difference(losses_on(device, problem), whole), "");
    }
    problem.given_counts.resize(2 * problem.given_counts.size(), 3);
    for (const auto& offsets : {std::vector<int32_t>{30, 5, -1}, {40, 40, 40}, {900, -900, 900}}) {
      problem.sequence_offsets = offsets;
      const LossOutputs got = losses_on(device, problem);
      EXPECT_TRUE(std::isfinite(got.losses[0]) && std::isfinite(got.losses[1]));
    }
  }
}

// The sums are taken in one order; a gradient does not depend on being asked for, nor do the losses on it.
TEST_P(RouterLoss, TheSameBitsOnceMore) {
  const int64_t many = device.starts_with("simt") ? 1100 : 40'000;
  for (const int64_t tokens : {int64_t{0}, int64_t{31}, many}) {
    const LossProblem problem =
        draw_loss({.tokens = tokens, .experts = 8, .top_k = 2, .dtype = TY_BFLOAT16}, tokens == 0 ? 0 : 5);
    expect_loss_right(device, problem);
    const LossOutputs first = losses_on(device, problem);
    EXPECT_EQ(difference(losses_on(device, problem), first), "");
    const LossOutputs alone = losses_on(device, problem, {.with_gradient = false});
    EXPECT_EQ(difference(alone.losses, first.losses), "");
    if (tokens == 0) {
      EXPECT_EQ(first.losses, (std::vector<float>{0, 0}));
    }
  }
}

// Even loads make the balance loss its coefficient; all pairs on one expert, up to E times as much.
TEST_P(RouterLoss, IsItsCoefficientWhereLoadsAreEven) {
  LossProblem problem = draw_loss(
      {.tokens = 64, .experts = 8, .top_k = 2, .score = TY_GATE_SIGMOID, .logits = Logits::kEqual}, 0);
  EXPECT_NEAR(losses_on(device, problem).losses[0], 0.01, 1e-8);
  for (size_t i = 0; i < problem.chosen.forward.logits.size(); ++i) {
    problem.chosen.forward.logits[i] = i % 8 < 2 ? 0 : -60.0f;
  }
  EXPECT_NEAR(losses_on(device, problem).losses[0], 0.04, 1e-8);  // four times the mean load on two of eight
}

}  // namespace
}  // namespace tokenyard::test
