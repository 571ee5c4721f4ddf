// What of a call experts are chosen by, as a kernel's argument.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gate/contract.hpp"
#include "gate/outputs.hpp"
#include "gate/weights.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

inline constexpr size_t kLargestLoad = 16;  // bytes that a lane loads at once

inline bool has_small_stride(const Problem& problem) { return problem.row_stride <= UINT32_MAX; }

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

// Of rows less than 2^32 logits apart. First all that a call needs which asks for nothing but ids and
// weights: CUDA keeps a kernel's arguments in a cache of 64-byte lines, whose first has 48 bytes for them,
// and a kernel that first reads another line at its end waits for it. Outputs and WeightRule have these, too.
template <class Logit>
struct Router {
  const Logit* logits;
  void* ids;
  float* weights;
  uint32_t row_stride;
  int32_t num_tokens;
  int32_t top_k;
  float scale;
  float epsilon;  // below 0: weights are raw
  uint16_t num_experts;
  bool is_plain;

  const float* bias;  // or nullptr
  int32_t kept_groups;
  int32_t group_size;
  ty_gate_group_score group_score;

  explicit Router(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        ids(problem.ids),
        weights(problem.weights),
        row_stride(static_cast<uint32_t>(problem.row_stride)),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        top_k(problem.top_k),
        scale(problem.scale),
        epsilon(problem.weight_mode == TY_GATE_RAW ? -1.0f : problem.epsilon),
        num_experts(static_cast<uint16_t>(problem.num_experts)),
        is_plain(Outputs(problem).is_plain),
        bias(static_cast<const float*>(problem.bias)),
        kept_groups(problem.kept_groups),
        group_size(problem.group_size()),
        group_score(problem.group_score) {
    static_assert(kMaxExperts <= UINT16_MAX);
  }

  // 0, which no compiler can know.
  TY_DEVICE uint32_t zero() const {
    static_assert(kMaxExperts < 1 << 13);
    return static_cast<uint32_t>(num_experts) >> 13;
  }

  TY_DEVICE const Logit* row(uint32_t token) const { return logits + uint64_t{token} * row_stride; }

  // The call's rule, read from here, of a way of weighing that is known to the compiler.
  TY_DEVICE WeightRule rule(const WeightRule& rule, Weighting weighting) const {
    WeightRule own = rule;
    own.weighting = weighting;
    own.mode = epsilon < 0 ? TY_GATE_RAW : TY_GATE_RENORMALIZED;
    own.epsilon = epsilon;
    own.scale = scale;
    return own;
  }

  TY_DEVICE void put_plain(uint32_t token, int32_t rank, int32_t expert, float weight) const {
    const uint32_t at = token * static_cast<uint32_t>(top_k) + static_cast<uint32_t>(rank);  // within int32
    static_cast<int32_t*>(ids)[at] = expert;
    weights[at] = weight;
  }
  TY_DEVICE void put_plain_pair(uint32_t token, Outputs::Pair<int32_t> experts,
                                Outputs::Pair<float> of_experts) const {
    static_cast<Outputs::Pair<int32_t>*>(ids)[token] = experts;
    reinterpret_cast<Outputs::Pair<float>*>(weights)[token] = of_experts;
  }
};

}  // namespace tokenyard::gate
