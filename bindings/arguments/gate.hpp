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

// Operators<...> with the types of these options but top_k, as functions of a framework take them.
template <template <class...> class Operators, class Tensor, class Word>
using WithGateOptions = Operators<Tensor, Word, Word, int64_t, int64_t, Word, double, double, int64_t, Word,
                                  double, Tensor, Tensor, int64_t, Tensor>;

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

// Whether outputs of these sizes are worth memory: else the library refuses the call.
bool has_sizes(const ty_gate_args& args);

// All ids are below it.
int64_t id_bound(const ty_gate_args& args);

// The constants for words; also those of the operations that are gate's backward and losses.
int32_t score_of(const char* operation, const std::string& word);
int32_t weight_mode_of(const char* operation, const std::string& word);
int32_t float_type_of(const char* operation, const char* argument, const View& view);

}  // namespace tokenyard::binding
