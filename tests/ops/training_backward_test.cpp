// gate_backward on every device: the CPU against the float64 reference, kernels against the CPU to the last
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "training_run.hpp"

namespace tokenyard::test {
namespace {

using harness::BackwardProblem;
using harness::difference;
using harness::draw_backward;
using harness::GateShape;
using harness::Logits;

void expect_backward_right(const std::string& device, const GateShape& shape, int misalignment = 0) {
  SCOPED_TRACE(shape.command());
  const BackwardProblem problem = draw_backward(shape);
  const std::vector<float> on_cpu = backward_on("cpu", problem, misalignment);
  if (device == "cpu") {
    EXPECT_EQ(harness::broken_promise(problem, on_cpu), "");
  } else {
    EXPECT_EQ(difference(backward_on(device, problem, misalignment), on_cpu), "");
  }
}

class Backward : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }
  const std::string device = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Training, Backward, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

// Both sides of what each team of lanes holds, with scores, weights and types in turn.
TEST_P(Backward, ShapesOfEveryKernel) {
  int n = 0;
  for (const int32_t experts : {1, 7, 8, 64, 65, 160, 256, 257, 384, 512, 513, 4096}) {
    for (const int32_t top_k : {1, 8, 33, 64}) {
      if (top_k > experts) continue;
      GateShape shape{.tokens = 11, .experts = experts, .top_k = top_k};
      shape.score = static_cast<ty_gate_score>(n % 3);
      shape.weights = static_cast<ty_gate_weights>(n / 3 % 3);
      shape.dtype = static_cast<ty_dtype>(TY_FLOAT32 + n / 2 % 3);
      shape.epsilon = n % 2 == 0 ? 0 : 0.5f;
      shape.scale = n % 4 == 0 ? -2.5f : 1;
      shape.int64_ids = n % 3 == 1;
      shape.shared = n % 5 == 2 ? 2 : 0;
      shape.seed = static_cast<uint64_t>(n);
      expect_backward_right(device, shape);
      ++n;
    }
  }
}

// Each way of weighing, on logits of every kind that has normal scores.
TEST_P(Backward, WeightsOfEveryKind) {
  for (int n = 0; n < 9; ++n) {
    for (const float epsilon : {0.0f, 0.25f}) {
      for (const Logits logits : {Logits::kNormal, Logits::kLow, Logits::kHigh, Logits::kTies,
                                  Logits::kSpecial, Logits::kNan, Logits::kEqual}) {
        const GateShape shape{.tokens = 9,
                              .experts = 60,
                              .top_k = 6,
                              .dtype = TY_FLOAT32,
                              .score = static_cast<ty_gate_score>(n % 3),
                              .weights = static_cast<ty_gate_weights>(n / 3),
                              .epsilon = epsilon,
                              .scale = 2.5f,
                              .logits = logits};
        expect_backward_right(device, shape);
      }
    }
  }
}

TEST_P(Backward, RowsWithGapsAndAnyAlignment) {
  for (const ty_dtype dtype : {TY_FLOAT32, TY_BFLOAT16, TY_FLOAT16}) {
    for (const int misalignment : {0, 1, 3}) {
      const GateShape shape{.tokens = 9,
                            .experts = 96,
                            .top_k = 4,
                            .dtype = dtype,
                            .row_stride = 96 + misalignment * 5,
                            .padding = 3};
      expect_backward_right(device, shape, misalignment);
    }
  }
}

// Scores below the smallest float32: what is left is a number, and exponentials lose nothing.
TEST_P(Backward, VanishingScores) {
  for (int n = 0; n < 9; ++n) {
    const BackwardProblem problem = draw_backward({.tokens = 9,
                                                   .experts = 60,
                                                   .top_k = 6,
                                                   .score = static_cast<ty_gate_score>(n % 3),
                                                   .weights = static_cast<ty_gate_weights>(n / 3),
                                                   .logits = Logits::kExtreme});
    const std::vector<float> got = backward_on(device, problem);
    EXPECT_TRUE(std::all_of(got.begin(), got.end(), [](float each) { return std::isfinite(each); })) << n;
    if (problem.forward.shape.score == TY_GATE_SOFTMAX) {
      EXPECT_EQ(difference(got, harness::reference(problem), TY_FLOAT32), "");
    }
  }
}

TEST_P(Backward, PaddingAndNanHaveNone) {
  for (const ty_gate_weights weights : {TY_GATE_RAW, TY_GATE_RENORMALIZED, TY_GATE_SOFTMAX_OF_CHOSEN}) {
    for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS}) {
      BackwardProblem problem = draw_backward(
          {.tokens = 8, .experts = 16, .top_k = 3, .score = score, .weights = weights, .epsilon = 0.5f});
      std::fill(problem.ids.begin(), problem.ids.begin() + 3, -1);
      std::fill(problem.ids.begin() + 3, problem.ids.begin() + 6, 1'000'000);
      problem.forward.logits[2 * 16 + static_cast<size_t>(problem.ids[6])] = std::nanf("");
      problem.weights_grad[6] = HUGE_VALF;  // of a weight that is 0 whatever the logits
      const std::vector<float> got = backward_on(device, problem);
      EXPECT_EQ(difference({got.begin(), got.begin() + 32}, std::vector<float>(32, 0.0f)), "");
      EXPECT_EQ(got[2 * 16 + static_cast<size_t>(problem.ids[6])], 0);
      EXPECT_EQ(difference(got, harness::reference(problem), TY_FLOAT32), "");
    }
  }
}

// Large batches take several rows at once, and the last of them may not be there.
TEST_P(Backward, TheBatchAroundATokenDoesNotMatter) {
  const int64_t many = device.starts_with("simt") ? 203 : 2403;
  for (const auto& [experts, most] : {std::pair{16, many}, {100, many}, {300, 40}, {1000, 40}}) {
    const BackwardProblem all =
        draw_backward({.tokens = most, .experts = experts, .top_k = 4, .dtype = TY_BFLOAT16});
    const std::vector<float> want = backward_on(device, all);
    EXPECT_EQ(difference(backward_on(device, all), want), "") << "once more";
    EXPECT_EQ(difference(backward_on("cpu", all), want), "") << "on the CPU";
    for (const int64_t tokens : {0, 1, 9, 33}) {
      BackwardProblem few = all;
      few.forward.shape.tokens = tokens;
      few.forward.logits.resize(static_cast<size_t>(tokens * experts));
      few.ids.resize(static_cast<size_t>(tokens * 4));
      few.weights_grad.resize(few.ids.size());
      const std::vector<float> got = backward_on(device, few);
      EXPECT_EQ(difference(got, {want.begin(), want.begin() + static_cast<ptrdiff_t>(got.size())}), "");
    }
  }
}

}  // namespace
}  // namespace tokenyard::test
