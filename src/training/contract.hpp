// The contracts of gate_backward, router_loss and balance on the host: the checks that every call passes.
#pragma once

#include <cstdint>

#include "gate/contract.hpp"
#include "port/port.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::training {

// Checked calls: what every implementation gets. All pointers are of one device.

struct GateBackwardProblem {
  gate::Problem forward;  // as far as weights of given ids depend on it; ids are read, all else is unset
  const float* weights_grad;
  void* logits_grad;

  // Whether experts that were not chosen have a gradient: their scores are in a total that divides the
  // weights.
  bool reaches_all() const {
    return forward.score == TY_GATE_SOFTMAX &&
           (forward.weight_mode == TY_GATE_RAW ||
            (forward.weight_mode == TY_GATE_RENORMALIZED && forward.epsilon > 0));
  }
};

struct RouterLossProblem {
  const void* logits;
  ty_dtype logits_dtype;
  int64_t num_tokens;
  int64_t row_stride;
  int32_t num_experts;
  ty_gate_score score;
  float balance_coefficient;
  float z_coefficient;
  const int32_t* sequence_offsets;  // or nullptr: one sequence
  int32_t num_sequences;
  int32_t num_columns;
  int32_t top_k;
  bool ids_are_int64;
  const void* ids;  // or nullptr: counts are given; nullptr too where there is nothing to balance
  int32_t* counts;
  float* losses;
  float* scratch;
  void* logits_grad;  // or nullptr

  int64_t runs() const { return (num_tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN; }
};

struct BalanceProblem {
  bool counts_are_int64;
  const void* counts;
  int32_t num_experts;
  float rate;
  float* bias;        // or nullptr
  float* statistics;  // or nullptr
};

// Checks `args` (of any version of the struct) and fills `problem`, or says what is wrong with which
// argument.
Status check(const ty_gate_backward_args* args, GateBackwardProblem& problem);
Status check(const ty_router_loss_args* args, RouterLossProblem& problem);
Status check(const ty_balance_args* args, BalanceProblem& problem);

}  // namespace tokenyard::training
