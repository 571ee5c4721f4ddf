// gate's contract on the host: limits and the checks that every call passes.
#pragma once

#include <cstdint>

#include "runtime/check.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::gate {

inline constexpr int kMaxExperts = 4096;
inline constexpr int kMaxTopK = 64;
inline constexpr int kMaxGroups = 256;
inline constexpr int kMaxShared = 64;
inline constexpr int kMaxPhysicalExperts = 65536;

// A checked call: what every implementation gets. All pointers are of one device.
struct Problem {
  // input
  const void* logits;
  ty_dtype logits_dtype;
  int64_t num_tokens;
  int64_t row_stride;
  int32_t num_experts;
  int32_t top_k;
  // selection
  ty_gate_score score;
  const void* bias;  // or nullptr
  ty_dtype bias_dtype;
  int32_t num_groups;  // 1 where every group is kept, too
  int32_t kept_groups;
  ty_gate_group_score group_score;
  // weights
  ty_gate_weights weight_mode;
  float epsilon;
  float scale;
  int32_t num_shared_experts;
  ty_gate_shared shared_mode;
  float shared_weight;
  // physical experts
  const int32_t* replicas;  // or nullptr
  const int32_t* num_replicas;
  int32_t max_replicas;
  int32_t num_physical_experts;    // equals num_experts without replicas
  const int32_t* num_real_tokens;  // or nullptr
  // output
  bool ids_are_int64;
  void* ids;
  float* weights;
  int32_t* counts;           // or nullptr
  int32_t* physical_counts;  // or nullptr
  int32_t lanes;             // 0: the table's choice

  int32_t columns() const { return top_k + num_shared_experts; }
  int32_t group_size() const { return num_experts / num_groups; }
};

// Checks `args` (of any version of the struct) and fills `problem`, or says what is wrong with which
// argument.
Status check(const ty_gate_args* args, Pointers pointers, Problem& problem);

}  // namespace tokenyard::gate
