#include <fmt/format.h>

#include <cstddef>

#include "picture.hpp"

namespace tokenyard::cli {
namespace {

constexpr int64_t kMostTokensInPicture = 16;

}  // namespace

bool fits_choices_picture(const harness::GateProblem& problem) {
  return problem.shape.tokens <= kMostTokensInPicture;
}

std::string choices_picture(const harness::GateProblem& problem, const harness::GateOutputs& outputs) {
  std::string lines = "token: experts with their weights, best first\n";
  for (int64_t token = 0; token < problem.shape.tokens; ++token) {
    lines += fmt::format("{:>5}:", token);
    for (int32_t k = 0; k < problem.columns(); ++k) {
      const auto at = static_cast<size_t>(token * problem.columns() + k);
      lines += fmt::format("  {} {:.4f}", outputs.ids[at], outputs.weights[at]);
    }
    lines += '\n';
  }
  return lines;
}

}  // namespace tokenyard::cli
