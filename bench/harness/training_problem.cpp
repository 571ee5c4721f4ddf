#include "harness/training_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gate/reference.hpp"
#include "harness/random.hpp"

namespace tokenyard::harness {
namespace {

// The columns that were chosen, without the shared ones.
template <class To, class T>
std::vector<To> routed(const GateProblem& forward, const std::vector<T>& values) {
  const auto columns = static_cast<size_t>(forward.columns());
  std::vector<To> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % columns < static_cast<size_t>(forward.shape.top_k)) kept.push_back(static_cast<To>(values[i]));
  }
  return kept;
}

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<int32_t> counts_of(const BackwardProblem& chosen, const std::vector<int32_t>& offsets) {
  const GateShape& shape = chosen.forward.shape;
  return training::reference_counts(routed<int64_t>(chosen.forward, chosen.ids), shape.top_k, offsets,
                                    shape.experts);
}

std::vector<int32_t> one_sequence(const BackwardProblem& chosen) {
  return {0, static_cast<int32_t>(chosen.forward.shape.tokens)};
}

}  // namespace

std::vector<int32_t> LossProblem::offsets() const {
  return sequence_offsets.empty() ? one_sequence(chosen) : sequence_offsets;
}

std::vector<int32_t> LossProblem::counts() const {
  return given_counts.empty() ? counts_of(chosen, offsets()) : given_counts;
}

BackwardProblem draw_backward(const GateShape& shape) {
  BackwardProblem problem{draw(shape), {}, {}};
  problem.ids = gate::reference(problem.forward.reference_input()).ids;
  Random random(shape.seed + 1);
  for (size_t i = 0; i < problem.ids.size(); ++i) {
    problem.weights_grad.push_back(static_cast<float>(random.between(-1000, 1000)) / 512);
  }
  return problem;
}

LossProblem with_losses(const TrainingShape& shape, BackwardProblem chosen) {
  LossProblem problem{.chosen = std::move(chosen),
                      .balance_coefficient = shape.balance_coefficient,
                      .z_coefficient = shape.z_coefficient,
                      .sequence_offsets = {},
                      .given_counts = {}};
  if (shape.sequences > 0) {
    Random random(shape.gate.seed + 2);
    // Some sequences are empty; the first tokens and the last may be in none.
    for (int32_t s = 0; s <= shape.sequences; ++s) {
      problem.sequence_offsets.push_back(static_cast<int32_t>(random.between(0, shape.gate.tokens)));
    }
    std::sort(problem.sequence_offsets.begin(), problem.sequence_offsets.end());
  }
  if (shape.counts_are_given) problem.given_counts = problem.counts();
  return problem;
}

LossProblem draw(const TrainingShape& shape) { return with_losses(shape, draw_backward(shape.gate)); }

BalanceProblem balance_of(const BackwardProblem& chosen) {
  const GateShape& shape = chosen.forward.shape;
  const std::vector<int32_t> counts = counts_of(chosen, one_sequence(chosen));
  BalanceProblem problem{
      .counts = {counts.begin(), counts.end()}, .int64_counts = shape.int64_ids, .bias = {}};
  Random random(shape.seed + 3);
  for (size_t e = 0; e < counts.size(); ++e) {
    problem.bias.push_back(static_cast<float>(random.between(-1000, 1000)) / 4096);
  }
  return problem;
}

TrainingShape draw_training_shape(uint64_t seed, int64_t max_logits) {
  static const std::vector<float> coefficients{0.01f, 0.01f, 1e-4f, -0.5f, 0};
  Random random(seed + 4);
  TrainingShape shape{.gate = draw_gate_shape(seed, max_logits)};
  shape.gate.replicas = 0;
  if (random.one_in(2)) shape.sequences = static_cast<int32_t>(random.between(1, 9));
  shape.counts_are_given = random.one_in(3);
  shape.balance_coefficient = random.any_of(coefficients);
  shape.z_coefficient = random.any_of(coefficients);
  return shape;
}

std::string TrainingShape::command() const {
  std::string command = gate.command();
  command.replace(0, std::string("tokenyard verify gate").size(), "tokenyard verify training");
  if (sequences != 0) command += fmt::format(" --sequences {}", sequences);
  if (counts_are_given) command += " --given-counts";
  return command + fmt::format(" --balance-loss {} --z-loss {}", balance_coefficient, z_coefficient);
}

training::ReferenceGradient reference(const BackwardProblem& problem) {
  const GateShape& shape = problem.forward.shape;
  const std::vector<double> logits = widened(problem.forward.logits);
  const auto ids = routed<int64_t>(problem.forward, problem.ids);
  const auto weights_grad = routed<double>(problem.forward, problem.weights_grad);
  return training::reference_backward({.logits = logits,
                                       .ids = ids,
                                       .weights_grad = weights_grad,
                                       .num_experts = shape.experts,
                                       .top_k = shape.top_k,
                                       .score = shape.score,
                                       .weight_mode = shape.weights,
                                       .epsilon = shape.epsilon,
                                       .scale = shape.scale});
}

training::ReferenceLoss reference(const LossProblem& problem) {
  const GateShape& shape = problem.chosen.forward.shape;
  const std::vector<double> logits = widened(problem.chosen.forward.logits);
  const std::vector<int32_t> offsets = problem.offsets();
  const std::vector<int32_t> counts = problem.counts();
  return training::reference_loss({.logits = logits,
                                   .sequence_offsets = offsets,
                                   .counts = counts,
                                   .num_experts = shape.experts,
                                   .score = shape.score,
                                   .balance_coefficient = problem.balance_coefficient,
                                   .z_coefficient = problem.z_coefficient});
}

}  // namespace tokenyard::harness
