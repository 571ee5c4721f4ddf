// The reference's gradients against differences of what they are the gradients of: gate's weights, the
// losses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include "gate/reference.hpp"
#include "harness/random.hpp"
#include "training/reference.hpp"

namespace tokenyard::test {
namespace {

// Logits on a grid on which x, x + step and x + 2 step are float32 numbers, whose functions are then taken in
// float64.
constexpr double kStep = 0x1p-8;

std::vector<double> grid_logits(size_t count, uint64_t seed) {
  harness::Random random(seed);
  std::vector<double> logits;
  for (size_t i = 0; i < count; ++i) {
    logits.push_back(static_cast<double>(random.between(-600, 600)) * kStep);
  }
  return logits;
}

// dL/dx_i by the central differences of fourth order.
double slope(const std::function<double(const std::vector<double>&)>& loss, std::vector<double> x, size_t i) {
  const auto at = [&, middle = x[i]](double steps) {
    x[i] = middle + steps * kStep;
    return loss(x);
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * kStep);
}

void expect_gradient(const std::function<double(const std::vector<double>&)>& loss,
                     const std::vector<double>& x, const training::ReferenceGradient& gradient) {
  ASSERT_EQ(gradient.value.size(), x.size());
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(gradient.value[i], slope(loss, x, i), 2e-9) << i;
    EXPECT_LE(std::fabs(gradient.value[i]), gradient.magnitude[i] * (1 + 1e-12)) << i;
    most = std::max(most, std::fabs(gradient.value[i]));
  }
  EXPECT_GT(most, 1e-4) << "nothing to compare";
}

TEST(TrainingGradients, OfTheWeights) {
  constexpr int32_t kExperts = 7, kTopK = 3;
  const std::vector<int64_t> ids{4, 0, 6, 1, 5, -1};  // of two tokens
  const std::vector<double> weights_grad{0.7, -1.1, 0.4, 1.3, 0.2, 5.0};
  const std::vector<float> no_bias;
  const std::vector<int32_t> no_table;
  for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS}) {
    for (const ty_gate_weights mode : {TY_GATE_RAW, TY_GATE_RENORMALIZED, TY_GATE_SOFTMAX_OF_CHOSEN}) {
      for (const double epsilon : {0.0, 0.25}) {
        const std::vector<double> logits = grid_logits(2 * kExperts, 3);
        const auto loss = [&](const std::vector<double>& x) {
          const std::vector<float> narrow(x.begin(), x.end());
          const gate::ReferenceInput input{.logits = narrow,
                                           .bias = no_bias,
                                           .num_experts = kExperts,
                                           .top_k = kTopK,
                                           .score = score,
                                           .num_groups = 1,
                                           .kept_groups = 1,
                                           .group_score = TY_GATE_GROUP_MAX,
                                           .weight_mode = mode,
                                           .epsilon = epsilon,
                                           .scale = -1.5,
                                           .num_shared_experts = 0,
                                           .shared_mode = TY_GATE_SHARED_FIXED,
                                           .shared_weight = 1,
                                           .replicas = no_table,
                                           .num_replicas = no_table,
                                           .num_physical_experts = kExperts,
                                           .num_real_tokens = 2};
          const auto first = gate::reference_weights(input, 0, {4, 0, 6});
          const auto second = gate::reference_weights(input, 1, {1, 5});
          double sum = 0;
          for (size_t k = 0; k < 3; ++k) sum += weights_grad[k] * first[k];
          for (size_t k = 0; k < 2; ++k) sum += weights_grad[3 + k] * second[k];
          return sum;
        };
        SCOPED_TRACE(testing::Message()
                     << "score " << score << ", weights " << mode << ", epsilon " << epsilon);
        expect_gradient(loss, logits,
                        training::reference_backward({.logits = logits,
                                                      .ids = ids,
                                                      .weights_grad = weights_grad,
                                                      .num_experts = kExperts,
                                                      .top_k = kTopK,
                                                      .score = score,
                                                      .weight_mode = mode,
                                                      .epsilon = epsilon,
                                                      .scale = -1.5}));
      }
    }
  }
}

TEST(TrainingGradients, OfTheLosses) {
  constexpr int32_t kExperts = 5;
  const std::vector<int32_t> offsets{1, 4, 4, 7};  // of eight tokens, two of which are padding
  const std::vector<int32_t> counts{3, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 2, 2, 0};
  for (const ty_gate_score score : {TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS}) {
    for (const auto& [balance, z] : {std::pair{0.5, 0.0}, {0.0, 0.25}, {-0.5, 0.25}}) {
      const auto evaluate = [&, balance = balance, z = z](const std::vector<double>& x) {
        return training::reference_loss({.logits = x,
                                         .sequence_offsets = offsets,
                                         .counts = counts,
                                         .num_experts = kExperts,
                                         .score = score,
                                         .balance_coefficient = balance,
                                         .z_coefficient = z});
      };
      const auto loss = [&](const std::vector<double>& x) {
        const training::ReferenceLoss both = evaluate(x);
        return both.balance + both.z;
      };
      SCOPED_TRACE(testing::Message() << "score " << score << ", " << balance << ", " << z);
      const std::vector<double> logits = grid_logits(8 * kExperts, 4);
      expect_gradient(loss, logits, evaluate(logits).gradient);
    }
  }
}

// The papers' own sums, for a case small enough to write them down.
TEST(TrainingGradients, LossesAreThoseOfThePapers) {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  const std::vector<double> logits{ln2, 0, ln3, 0};  // two tokens of two experts: shares 2/3, 1/3; 3/4, 1/4
  const std::vector<int32_t> one{0, 2}, each{0, 1, 2};
  const std::vector<int32_t> both{2, 0}, apart{1, 0, 0, 1};
  const auto loss = [&](const std::vector<int32_t>& offsets, const std::vector<int32_t>& counts,
                        ty_gate_score score) {
    return training::reference_loss({.logits = logits,
                                     .sequence_offsets = offsets,
                                     .counts = counts,
                                     .num_experts = 2,
                                     .score = score,
                                     .balance_coefficient = 0.5,
                                     .z_coefficient = 0.25});
  };
  // N sum of f_i P_i with f = (1, 0): the mean of 2/3 and 3/4, doubled.
  EXPECT_NEAR(loss(one, both, TY_GATE_SOFTMAX).balance, 0.5 * 2 * (2.0 / 3 + 3.0 / 4) / 2, 1e-15);
  // Each token a sequence: 2 x 2/3, and 2 x 1/4 of the second, whose only pair is the other expert's.
  EXPECT_NEAR(loss(each, apart, TY_GATE_SOFTMAX).balance, 0.5 * (2 * 2.0 / 3 + 2 * 1.0 / 4) / 2, 1e-15);
  // Sigmoids 2/3 and 1/2, 3/4 and 1/2: normalised 4/7, 3/5.
  EXPECT_NEAR(loss(one, both, TY_GATE_SIGMOID).balance, 0.5 * 2 * (4.0 / 7 + 3.0 / 5) / 2, 1e-15);
  // ln(2 + 1) and ln(3 + 1), squared.
  EXPECT_NEAR(loss(one, both, TY_GATE_SOFTMAX).z, 0.25 * (ln3 * ln3 + 4 * ln2 * ln2) / 2, 1e-15);
}

}  // namespace
}  // namespace tokenyard::test
