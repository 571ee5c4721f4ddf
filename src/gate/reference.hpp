// gate as a specification: sequential, in float64, host only, shares nothing with the kernels or the CPU
// code.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard::gate {

struct ReferenceInput {
  const std::vector<float>& logits;  // [num_tokens, num_experts], contiguous
  const std::vector<float>& bias;    // [num_experts], or empty
  int32_t num_experts;
  int32_t top_k;
  ty_gate_score score;
  int32_t num_groups;  // 1 without groups
  int32_t kept_groups;
  ty_gate_group_score group_score;
  ty_gate_weights weight_mode;
  double epsilon;
  double scale;
  int32_t num_shared_experts;
  ty_gate_shared shared_mode;
  double shared_weight;
  const std::vector<int32_t>& replicas;  // [num_experts, max_replicas], or empty
  const std::vector<int32_t>& num_replicas;
  int32_t num_physical_experts;  // equals num_experts without replicas
  int64_t num_real_tokens;
};

// What one token's experts are chosen by.
struct ReferenceRow {
  std::vector<double> score;         // [num_experts], 0 for NaN
  std::vector<double> selection;     // [num_experts], before groups are masked
  std::vector<double> group_score;   // [num_groups]
  std::vector<int32_t> kept_groups;  // ascending
  std::vector<int32_t> chosen;       // [top_k] experts as the router numbers them
};

struct ReferenceOutput {
  std::vector<int64_t> ids;              // [num_tokens, top_k + num_shared_experts]
  std::vector<double> weights;           // likewise
  std::vector<int32_t> counts;           // [num_experts]
  std::vector<int32_t> physical_counts;  // [num_physical_experts]
};

ReferenceRow reference_row(const ReferenceInput& input, int64_t token);

// The K experts of a row if exactly these groups were kept.
std::vector<int32_t> reference_choice(const ReferenceInput& input, const ReferenceRow& row,
                                      const std::vector<int32_t>& kept_groups);

// The weights of a row if exactly these experts were chosen.
std::vector<double> reference_weights(const ReferenceInput& input, int64_t token,
                                      const std::vector<int32_t>& chosen);

// The physical expert of a token's expert.
int32_t reference_physical(const ReferenceInput& input, int64_t token, int32_t expert);

ReferenceOutput reference(const ReferenceInput& input);

}  // namespace tokenyard::gate
