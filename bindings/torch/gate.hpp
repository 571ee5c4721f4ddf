// A call of gate, from tensors to ty_gate_args. The operators differ in their outputs alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensors.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::torch_binding {

// In the order of the schema.
struct GateOptions {
  int64_t top_k;
  std::optional<Tensor> bias;
  std::string score;
  std::string weight_mode;
  int64_t num_groups;
  int64_t kept_groups;
  std::string group_score;
  double epsilon;
  double scale;
  int64_t num_shared_experts;
  std::string shared_mode;
  double shared_weight;
  std::optional<Tensor> replicas;
  std::optional<Tensor> num_replicas;
  int64_t num_physical_experts;
  std::optional<Tensor> num_real_tokens;
};

struct Chosen {
  Tensor ids, weights;
};

struct Counts {
  Tensor of_experts, of_physical_experts;
};

class Gate {
 public:
  Gate(const Tensor& logits, const GateOptions& options);

  // New tensors of the right size.
  Chosen chosen(std::optional<ScalarType> ids_dtype) const;
  Counts counts() const;

  // Where run() writes.
  void write(const Chosen& chosen);
  void write(const Counts& counts);

  void run() const;

 private:
  Place place_;
  ty_gate_args args_;
};

}  // namespace tokenyard::torch_binding
