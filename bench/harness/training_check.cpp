// What the outputs of the router's training must be, from the float64 reference.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "harness/training_run.hpp"

namespace tokenyard::harness {
namespace {

constexpr double kRelative = 1e-5;         // of losses, and of what a gradient is made of
constexpr double kStatistics = 2e-6;       // relative above 1, else absolute
constexpr float kLowestNormalLogit = -87;  // from which on every score is a normal float32 number

// Softmax is held to it always: scores that vanish are nothing beside the rest of their row.
bool has_normal_scores(const GateProblem& forward) {
  if (forward.shape.score == TY_GATE_SOFTMAX) return true;
  return std::none_of(forward.logits.begin(), forward.logits.end(),
                      [](float x) { return x < kLowestNormalLogit && std::isfinite(x); });
}

std::string wrong_gradient(const GateProblem& forward, const std::vector<float>& got,
                           const training::ReferenceGradient& want) {
  if (has_normal_scores(forward)) return difference(got, want, forward.shape.dtype);
  const auto bad = std::find_if(got.begin(), got.end(), [](float x) { return !std::isfinite(x); });
  if (bad == got.end()) return "";
  return fmt::format("number {} of the gradient is {}, expected a finite one", bad - got.begin(), *bad);
}

std::string wrong_loss(const char* name, float got, double want) {
  if (got == want || std::fabs(got - want) <= kRelative * std::fabs(want)) return "";
  return fmt::format("the {} loss is {}, expected {} to a relative {}", name, got, want, kRelative);
}

}  // namespace

std::string difference(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return fmt::format("{} numbers, expected {}", got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i])) {
      return fmt::format("number {} is {}, expected the bits of {}", i, got[i], want[i]);
    }
  }
  return "";
}

std::string difference(const LossOutputs& got, const LossOutputs& want) {
  if (got.counts != want.counts) return "the counts differ";
  const std::string losses = difference(got.losses, want.losses);
  if (!losses.empty()) return "losses: " + losses;
  const std::string gradient = difference(got.gradient, want.gradient);
  return gradient.empty() ? "" : "gradient: " + gradient;
}

std::string difference(const BalanceOutputs& got, const BalanceOutputs& want) {
  const std::string bias = difference(got.bias, want.bias);
  if (!bias.empty()) return "bias: " + bias;
  const std::string statistics = difference(got.statistics, want.statistics);
  return statistics.empty() ? "" : "statistics: " + statistics;
}

std::string difference(const std::vector<float>& got, const training::ReferenceGradient& want,
                       ty_dtype dtype) {
  if (got.size() != want.value.size()) {
    return fmt::format("the gradient has {} numbers, expected {}", got.size(), want.value.size());
  }
  const double of_type = dtype == TY_FLOAT32 ? 0 : dtype == TY_BFLOAT16 ? 0x1p-8 : 0x1p-11;
  const double least = dtype == TY_FLOAT16 ? 0x1p-24 : 0x1p-120;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = kRelative * want.magnitude[i] + of_type * std::fabs(want.value[i]) + least;
    if (!(std::fabs(got[i] - want.value[i]) <= allowed)) {
      return fmt::format("number {} of the gradient is {}, expected {} to {}", i, got[i], want.value[i],
                         allowed);
    }
  }
  return "";
}

std::string broken_promise(const BackwardProblem& problem, const std::vector<float>& gradient) {
  return wrong_gradient(problem.forward, gradient, reference(problem));
}

std::string broken_promise(const LossProblem& problem, const LossOutputs& outputs) {
  const training::ReferenceLoss want = reference(problem);
  if (problem.balance_coefficient != 0 && outputs.counts != problem.counts()) {
    return "the counts are not those of the ids";
  }
  std::string wrong = wrong_loss("z", outputs.losses[1], want.z);
  // A token whose scores vanish has no balance loss.
  if (wrong.empty() && has_normal_scores(problem.chosen.forward)) {
    wrong = wrong_loss("balance", outputs.losses[0], want.balance);
  }
  if (wrong.empty() && !outputs.gradient.empty()) {
    wrong = wrong_gradient(problem.chosen.forward, outputs.gradient, want.gradient);
  }
  return wrong;
}

std::string broken_promise(const BalanceProblem& problem, const BalanceOutputs& outputs) {
  const training::ReferenceBalance want = training::reference_balance(problem.counts);
  for (size_t e = 0; e < outputs.bias.size(); ++e) {
    const float moved = problem.bias[e] + problem.rate * static_cast<float>(want.direction[e]);
    if (outputs.bias[e] != moved) {
      return fmt::format("bias[{}] is {}, expected {}: the load is {}", e, outputs.bias[e], moved,
                         problem.counts[e]);
    }
  }
  for (size_t i = 0; i < outputs.statistics.size(); ++i) {
    const double allowed = kStatistics * std::max(1.0, want.statistics[i]);
    if (!(std::fabs(outputs.statistics[i] - want.statistics[i]) <= allowed)) {
      return fmt::format("statistics[{}] is {}, expected {}", i, outputs.statistics[i], want.statistics[i]);
    }
  }
  return "";
}

}  // namespace tokenyard::harness
