// What of a call experts are chosen by, as a kernel's argument.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gate/contract.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

inline constexpr size_t kLargestLoad = 16;  // bytes that a lane loads at once

// Whether lanes may load so many neighbouring experts at once, and as many of a bias.
inline bool loads_whole_chunks(const Problem& problem, int32_t items) {
  const size_t element = problem.logits_dtype == TY_FLOAT32 ? 4 : 2;
  const auto chunk = [&](size_t size) {
    const size_t bytes = static_cast<size_t>(items) * size;
    return bytes < kLargestLoad ? bytes : kLargestLoad;
  };
  const auto fits = [&](size_t bytes) { return bytes % chunk(element) == 0; };
  if (!fits(reinterpret_cast<uintptr_t>(problem.logits)) ||
      !fits(static_cast<size_t>(problem.row_stride) * element) ||
      !fits(static_cast<size_t>(problem.num_experts) * element)) {
    return false;
  }
  return problem.bias == nullptr || (problem.bias_dtype == TY_FLOAT32 &&
                                     reinterpret_cast<uintptr_t>(problem.bias) % chunk(sizeof(float)) == 0);
}

template <class Logit>
struct Router {
  const Logit* logits;
  int64_t row_stride;
  const float* bias;  // or nullptr
  int32_t num_tokens;
  int32_t num_experts;
  int32_t top_k;
  int32_t kept_groups;
  int32_t group_size;
  ty_gate_group_score group_score;

  explicit Router(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        row_stride(problem.row_stride),
        bias(static_cast<const float*>(problem.bias)),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        num_experts(problem.num_experts),
        top_k(problem.top_k),
        kept_groups(problem.kept_groups),
        group_size(problem.group_size()),
        group_score(problem.group_score) {}

  TY_DEVICE const Logit* row(int64_t token) const { return logits + token * row_stride; }
};

}  // namespace tokenyard::gate
