// From tensors to ty_gate_args.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tokenyard/tokenyard.h"
#include "view.hpp"

namespace tokenyard::binding {

// In the order of the operators' schema.
struct GateOptions {
  int64_t top_k;
  std::optional<View> bias;
  std::string score;        // "softmax", "sigmoid", "sqrt_softplus"
  std::string weight_mode;  // "raw", "renormalized", "softmax_of_chosen"
  int64_t num_groups;
  int64_t kept_groups;
  std::string group_score;  // "max", "top2"
  double epsilon;
  double scale;
  int64_t num_shared_experts;
  std::string shared_mode;  // "fixed", "of_sum"
  double shared_weight;
  std::optional<View> replicas;
  std::optional<View> num_replicas;
  int64_t num_physical_experts;
  std::optional<View> num_real_tokens;
};

struct GateOutputs {
  View ids, weights;
  std::optional<View> counts = {}, physical_counts = {};
};

ty_gate_args arguments(const View& logits, const GateOptions& options);

// Checks them and has them written. Without replicas, physical_counts is empty and not written.
void write_to(ty_gate_args& args, const GateOutputs& outputs, ty_device device);

// Columns of ids and weights.
int64_t columns(const ty_gate_args& args);

// Elements of physical_counts.
int64_t physical_experts(const ty_gate_args& args);

}  // namespace tokenyard::binding
