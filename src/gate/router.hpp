// What of a call experts are chosen by, as a kernel's argument.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gate/contract.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Whether 16 bytes can be loaded at once, of logits and of a bias in float32.
inline bool loads_whole_packs(const Problem& problem) {
  const size_t element = problem.logits_dtype == TY_FLOAT32 ? 4 : 2;
  const auto fits = [](size_t bytes) { return bytes % 16 == 0; };
  return fits(reinterpret_cast<uintptr_t>(problem.logits)) &&
         fits(static_cast<size_t>(problem.row_stride) * element) &&
         fits(static_cast<size_t>(problem.num_experts) * element) &&
         (problem.bias == nullptr ||
          (problem.bias_dtype == TY_FLOAT32 && fits(reinterpret_cast<uintptr_t>(problem.bias))));
}

template <class Logit>
struct Router {
  const Logit* logits;
  int64_t row_stride;
  const void* bias;
  int32_t num_tokens;
  int32_t num_experts;
  int32_t top_k;
  bool whole_packs;
  bool bias_is_float32;
  int32_t kept_groups;
  int32_t group_size;
  ty_gate_group_score group_score;

  explicit Router(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        row_stride(problem.row_stride),
        bias(problem.bias),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        num_experts(problem.num_experts),
        top_k(problem.top_k),
        whole_packs(loads_whole_packs(problem)),
        bias_is_float32(problem.bias_dtype == TY_FLOAT32),
        kept_groups(problem.kept_groups),
        group_size(problem.group_size()),
        group_score(problem.group_score) {}

  TY_DEVICE const Logit* row(int64_t token) const { return logits + token * row_stride; }

  TY_DEVICE float bias_of(int32_t expert) const {
    return bias_is_float32 ? static_cast<const float*>(bias)[expert]
                           : port::to_float(static_cast<const Logit*>(bias)[expert]);
  }
};

}  // namespace tokenyard::gate
