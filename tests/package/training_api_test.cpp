// The C++ layer over the router's training.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tokenyard/gate.hpp"
#include "tokenyard/training.hpp"

namespace {

// A step of training on the host: choose, take the gradients, move the biases.
TEST(TrainingApi, TrainsOnTheHost) {
  const std::vector<float> logits{2, 1, 0, -1, 2, 0, 1, -1};  // two tokens of four experts
  std::vector<int32_t> ids(4), gate_counts(4);
  std::vector<float> weights(4), bias(4);
  tokenyard::GateArgs forward(logits.data(), TY_FLOAT32, 2, 4, 2);
  forward.weight_mode = TY_GATE_RENORMALIZED;
  forward.ids = ids.data();
  forward.weights = weights.data();
  forward.counts = gate_counts.data();
  tokenyard::gate(TY_CPU, forward, nullptr);

  const std::vector<float> weights_grad{1, 0, 0, 1};
  std::vector<float> gradient(8);
  tokenyard::gate_backward(TY_CPU, {forward, weights_grad.data(), gradient.data()}, nullptr);
  const float slope = weights[0] * weights[1];
  const std::vector<float> want{slope, -slope, 0, 0, -slope, 0, slope, 0};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(gradient[i], want[i], 1e-6) << i;

  const std::vector<int32_t> offsets{0, 1, 2};
  tokenyard::RouterLossArgs loss(forward, 0.5f, 0.1f);
  loss.set_sequences(offsets.data(), 2);
  std::vector<int32_t> counts(static_cast<size_t>(loss.counts_size()));
  std::vector<float> scratch(static_cast<size_t>(loss.scratch_size())), losses(2);
  loss.counts = counts.data();
  loss.scratch = scratch.data();
  loss.losses = losses.data();
  tokenyard::router_loss(TY_CPU, loss, nullptr);
  EXPECT_EQ(counts, (std::vector<int32_t>{1, 1, 0, 0, 1, 0, 1, 0}));
  EXPECT_GT(losses[0], 0.5f);  // even loads would give the coefficient
  EXPECT_GT(losses[1], 0);

  const tokenyard::LoadStatistics load = tokenyard::balance(gate_counts, 0.25f, bias);
  EXPECT_EQ(bias, (std::vector<float>{-0.25f, 0, 0, 0.25f}));
  EXPECT_EQ(load.max, 2);
  EXPECT_EQ(load.idle, 0.25f);
}

TEST(TrainingApi, ThrowsWhatTheLibrarySays) {
  const std::vector<int32_t> counts{1, 2, 3};
  std::vector<float> bias(2);
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const tokenyard::Error& error) {
      EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([&] { tokenyard::balance(counts, 1, bias); }).substr(0, 37),
            "balance: bias has 2 numbers, expected");
  EXPECT_EQ(message([&] { tokenyard::balance({}, 1); }).substr(0, 28), "balance: num_experts is 0, e");
}

}  // namespace
