// From tensors to the arguments of the router's training.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tokenyard/tokenyard.h"
#include "view.hpp"

namespace tokenyard::binding {

struct BackwardInputs {
  View weights_grad;  // as gate's weights
  View logits;
  View ids;       // gate's, all columns
  int64_t top_k;  // columns of them that were chosen; the others are shared experts'
  std::string score, weight_mode;
  double epsilon, scale;
};

struct LossInputs {
  View logits;
  std::optional<View> ids;       // or else counts are given
  std::optional<int64_t> top_k;  // columns of ids that are counted; all
  std::optional<View> sequence_offsets;
  std::string score;
  double balance_coefficient, z_coefficient;
};

struct LossOutputs {
  View losses, scratch;
  std::optional<View> counts;  // input where there are no ids
  std::optional<View> logits_grad;
};

ty_gate_backward_args arguments(const BackwardInputs& inputs);
ty_router_loss_args arguments(const LossInputs& inputs);

// `bias` or `statistics` are written.
ty_balance_args arguments(const View& counts, double rate, const std::optional<View>& bias,
                          const std::optional<View>& statistics);

// Check them and have them written.
void write_to(ty_gate_backward_args& args, const View& logits_grad, ty_device device);
void write_to(ty_router_loss_args& args, const LossOutputs& outputs, ty_device device);

// Elements of a loss's scratch.
int64_t scratch_size(const ty_router_loss_args& args);

}  // namespace tokenyard::binding
