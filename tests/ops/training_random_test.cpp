// Random batches for the router's training. The name of a test holds its seed, its failure the command that
// runs it again.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "training_run.hpp"

namespace tokenyard::test {
namespace {

class TrainingRandom : public testing::TestWithParam<std::tuple<std::string, int>> {};

// The CPU against the reference, kernels against the CPU's bits.
TEST_P(TrainingRandom, IsRight) {
  const auto& [device, seed] = GetParam();
  TY_SKIP_IF_MISSING(device);
  const harness::TrainingShape shape = harness::draw_training_shape(static_cast<uint64_t>(seed), 3000);
  SCOPED_TRACE(shape.command() + " --device " + device);
  const harness::LossProblem losses = harness::draw(shape);
  const harness::BalanceProblem load = harness::balance_of(losses.chosen);
  const auto gradient = backward_on("cpu", losses.chosen);
  const auto loss = losses_on("cpu", losses);
  const auto balanced = balance_on("cpu", load);
  if (device == "cpu") {
    EXPECT_EQ(harness::broken_promise(losses.chosen, gradient), "");
    EXPECT_EQ(harness::broken_promise(losses, loss), "");
    EXPECT_EQ(harness::broken_promise(load, balanced), "");
  } else {
    EXPECT_EQ(harness::difference(backward_on(device, losses.chosen), gradient), "");
    EXPECT_EQ(harness::difference(losses_on(device, losses), loss), "");
    EXPECT_EQ(harness::difference(balance_on(device, load), balanced), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Training, TrainingRandom,
                         testing::Combine(testing::ValuesIn(kRealDevices), testing::Range(0, 20)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_seed_" +
                                  std::to_string(std::get<1>(info.param));
                         });

// What is checked would find a mistake of one number.
TEST(TrainingCheck, FindsOneWrongNumber) {
  const harness::LossProblem problem = harness::draw(harness::TrainingShape{
      .gate = {.tokens = 9, .experts = 16, .top_k = 3, .score = TY_GATE_SIGMOID}, .sequences = 2});
  auto gradient = backward_on("cpu", problem.chosen);
  ASSERT_EQ(harness::broken_promise(problem.chosen, gradient), "");
  gradient[static_cast<size_t>(problem.chosen.ids[0])] *= 1.001f;
  EXPECT_NE(harness::broken_promise(problem.chosen, gradient), "");

  const auto right = losses_on("cpu", problem);
  ASSERT_EQ(harness::broken_promise(problem, right), "");
  for (const size_t of : {0, 1}) {
    auto wrong = right;
    wrong.losses[of] *= 1.001f;
    EXPECT_NE(harness::broken_promise(problem, wrong), "");
  }
  auto miscounted = right;
  ++miscounted.counts[0];
  EXPECT_NE(harness::broken_promise(problem, miscounted), "");

  const harness::BalanceProblem load = harness::balance_of(problem.chosen);
  const auto balanced = balance_on("cpu", load);
  ASSERT_EQ(harness::broken_promise(load, balanced), "");
  auto unmoved = balanced;
  unmoved.bias = load.bias;
  EXPECT_NE(harness::broken_promise(load, unmoved), "");
  auto even = balanced;
  even.statistics[TY_LOAD_MAX] = 1;
  EXPECT_NE(harness::broken_promise(load, even), "");
}

}  // namespace
}  // namespace tokenyard::test
