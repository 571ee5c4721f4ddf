// The router's training for C++20, over the C ABI: see tokenyard.hpp for errors and devices, tokenyard.h for
// every field, docs/training.md for the formulas.
//
//   tokenyard::GateArgs forward(logits, TY_BFLOAT16, num_tokens, preset);         // as it was called
//   tokenyard::gate_backward(device, {forward, weights_grad, logits_grad}, stream);
//
//   tokenyard::RouterLossArgs loss(forward, /*balance=*/1e-4f, /*z=*/1e-3f);
//   loss.set_sequences(offsets, num_sequences);
//   loss.counts = allocate(loss.counts_size());
//   loss.scratch = allocate(loss.scratch_size());
//   loss.losses = allocate(2);
//   loss.logits_grad = loss_grad;
//   tokenyard::router_loss(device, loss, stream);
//
//   auto load = tokenyard::balance(counts, /*rate=*/0.001f, bias);                // host memory, on the CPU
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tokenyard/tokenyard.h"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard {
inline namespace v0 {

// The arguments of gate_backward, complete. ids must be the router's own: those of a call without replicas.
struct GateBackwardArgs : ty_gate_backward_args {
  // weights_grad: [num_tokens, columns], like the weights; logits_grad: [num_tokens, num_experts],
  // contiguous.
  GateBackwardArgs(const ty_gate_args& forward, const float* weights_grad, void* logits_grad)
      : ty_gate_backward_args TY_GATE_BACKWARD_ARGS_INIT {
    this->logits_dtype = forward.logits_dtype;
    this->logits = forward.logits;
    this->num_tokens = forward.num_tokens;
    this->row_stride = forward.row_stride;
    this->num_experts = forward.num_experts;
    this->top_k = forward.top_k;
    this->score = forward.score;
    this->weight_mode = forward.weight_mode;
    this->epsilon = forward.epsilon;
    this->scale = forward.scale;
    this->num_shared_experts = forward.num_shared_experts;
    this->ids_dtype = forward.ids_dtype;
    this->ids = forward.ids;
    this->weights_grad = weights_grad;
    this->logits_grad = logits_grad;
  }
};

inline void gate_backward(Device device, const GateBackwardArgs& args, void* stream) {
  check(ty_gate_backward(device, &args, stream));
}

// The arguments of router_loss: losses, scratch and, with a balance loss, counts must be set, logits_grad may
// be.
struct RouterLossArgs : ty_router_loss_args {
  // Over all tokens; counts are taken from the ids of the call. To give counts instead, set ids to nullptr.
  RouterLossArgs(const ty_gate_args& forward, float balance_coefficient, float z_coefficient)
      : ty_router_loss_args TY_ROUTER_LOSS_ARGS_INIT {
    this->logits_dtype = forward.logits_dtype;
    this->logits = forward.logits;
    this->num_tokens = forward.num_tokens;
    this->row_stride = forward.row_stride;
    this->num_experts = forward.num_experts;
    this->score = forward.score;
    this->balance_coefficient = balance_coefficient;
    this->z_coefficient = z_coefficient;
    this->num_columns = forward.top_k + forward.num_shared_experts;
    this->top_k = forward.top_k;
    this->ids_dtype = forward.ids_dtype;
    this->ids = forward.ids;
  }

  // offsets: [count + 1], on the device.
  void set_sequences(const int32_t* offsets, int32_t count) {
    sequence_offsets = offsets;
    num_sequences = count;
  }

  int64_t counts_size() const { return int64_t{num_sequences} * num_experts; }
  int64_t scratch_size() const { return 2 * ((num_tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN); }
};

inline void router_loss(Device device, const RouterLossArgs& args, void* stream) {
  check(ty_router_loss(device, &args, stream));
}

inline void balance(Device device, const ty_balance_args& args, void* stream) {
  check(ty_balance(device, &args, stream));
}

// How even a load is: see ty_load_statistic.
struct LoadStatistics {
  float max, min, entropy, idle;
};

// Moves `bias`, if there is one, a step against the counts; all in host memory, on the CPU.
inline LoadStatistics balance(std::span<const int32_t> counts, float rate = 0, std::span<float> bias = {}) {
  if (!bias.empty() && bias.size() != counts.size()) {
    throw Error(TY_INVALID_ARGUMENT, "balance: bias has " + std::to_string(bias.size()) +
                                         " numbers, expected " + std::to_string(counts.size()) +
                                         ", as many as counts: pass both of one layer");
  }
  float statistics[4];
  ty_balance_args args = TY_BALANCE_ARGS_INIT;
  args.counts = counts.data();
  args.num_experts = static_cast<int32_t>(counts.size());
  args.rate = rate;
  args.bias = bias.data();
  args.statistics = statistics;
  balance(TY_CPU, args, nullptr);
  return {statistics[TY_LOAD_MAX], statistics[TY_LOAD_MIN], statistics[TY_LOAD_ENTROPY],
          statistics[TY_LOAD_IDLE]};
}

}  // namespace v0
}  // namespace tokenyard
