// torch.ops.tokenyard.gate_backward, router_loss, balance_step and load_statistics. The functions of
// python/tokenyard/training.py document them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "tensors.hpp"

namespace tokenyard::torch_binding {

Tensor gate_backward(const Tensor& weights_grad, const Tensor& logits, const Tensor& ids, int64_t top_k,
                     std::string score, std::string weight_mode, double epsilon, double scale);

// The sum of the losses, the two, the counts of the experts if there were ids to count, and the gradient of
// the sum.
std::tuple<Tensor, Tensor, Tensor, Tensor> router_loss(const Tensor& logits, const std::optional<Tensor>& ids,
                                                       std::optional<int64_t> top_k,
                                                       const std::optional<Tensor>& counts,
                                                       const std::optional<Tensor>& sequence_offsets,
                                                       std::string score, double balance_coefficient,
                                                       double z_coefficient);

void balance_step(const Tensor& bias, const Tensor& counts, double rate);

Tensor load_statistics(const Tensor& counts);

}  // namespace tokenyard::torch_binding
