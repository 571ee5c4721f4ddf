// The router's training as a specification: sequential, in float64, host only, shares nothing with the
// kernels or the CPU code.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard::training {

// A gradient, and for each of its numbers the sum of the magnitudes that it is made of: by which rounding
// scales.
struct ReferenceGradient {
  std::vector<double> value, magnitude;  // [num_tokens, num_experts]
};

struct ReferenceBackwardInput {
  const std::vector<double>& logits;        // [num_tokens, num_experts]
  const std::vector<int64_t>& ids;          // [num_tokens, top_k]
  const std::vector<double>& weights_grad;  // likewise
  int32_t num_experts;
  int32_t top_k;
  ty_gate_score score;
  ty_gate_weights weight_mode;
  double epsilon;
  double scale;
};

ReferenceGradient reference_backward(const ReferenceBackwardInput& input);

struct ReferenceLossInput {
  const std::vector<double>& logits;             // [num_tokens, num_experts]
  const std::vector<int32_t>& sequence_offsets;  // ascending, at least two
  const std::vector<int32_t>& counts;            // [sequences, num_experts]
  int32_t num_experts;
  ty_gate_score score;
  double balance_coefficient;
  double z_coefficient;
};

struct ReferenceLoss {
  double balance = 0, z = 0;
  ReferenceGradient gradient;  // of their sum
};

ReferenceLoss reference_loss(const ReferenceLossInput& input);

// How often the ids [num_tokens, top_k] name each expert in each sequence: [sequences, num_experts].
std::vector<int32_t> reference_counts(const std::vector<int64_t>& ids, int32_t top_k,
                                      const std::vector<int32_t>& sequence_offsets, int32_t num_experts);

struct ReferenceBalance {
  std::vector<int> direction;      // of each bias: -1, 0, 1
  std::vector<double> statistics;  // by ty_load_statistic
};

ReferenceBalance reference_balance(const std::vector<int64_t>& counts);

}  // namespace tokenyard::training
