#include "training.hpp"

#include <torch/csrc/stable/ops.h>

#include <utility>

#include "arguments/training.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::torch_binding {

Tensor gate_backward(const Tensor& weights_grad, const Tensor& logits, const Tensor& ids, int64_t top_k,
                     std::string score, std::string weight_mode, double epsilon, double scale) {
  const Place place(logits);
  ty_gate_backward_args args = binding::arguments({view(weights_grad), view(logits), view(ids), top_k,
                                                   std::move(score), std::move(weight_mode), epsilon, scale});
  Tensor logits_grad = place.empty({args.num_tokens, args.num_experts}, logits.scalar_type());
  binding::write_to(args, view(logits_grad), place.device());
  check(ty_gate_backward(place.device(), &args, place.stream()));
  return logits_grad;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> router_loss(const Tensor& logits, const std::optional<Tensor>& ids,
                                                       std::optional<int64_t> top_k,
                                                       const std::optional<Tensor>& counts,
                                                       const std::optional<Tensor>& sequence_offsets,
                                                       std::string score, double balance_coefficient,
                                                       double z_coefficient) {
  if (ids && counts) {
    binding::refuse("router_loss", "counts", "given", "None where ids are", "the ids are counted: pass one");
  }
  const Place place(logits);
  ty_router_loss_args args = binding::arguments({view(logits), view(ids), top_k, view(sequence_offsets),
                                                 std::move(score), balance_coefficient, z_coefficient});
  const bool is_counted = ids && args.balance_coefficient != 0;
  const Tensor losses = place.empty({2}, ScalarType::Float);
  const Tensor scratch = place.empty({binding::scratch_size(args)}, ScalarType::Float);
  const Tensor made = place.empty({is_counted ? args.num_sequences : 0, args.num_experts}, ScalarType::Int);
  const Tensor logits_grad = place.empty({args.num_tokens, args.num_experts}, logits.scalar_type());
  binding::write_to(args,
                    {.losses = view(losses),
                     .scratch = view(scratch),
                     .counts = is_counted ? view(made) : view(counts),
                     .logits_grad = view(logits_grad)},
                    place.device());
  check(ty_router_loss(place.device(), &args, place.stream()));
  return {torch::stable::sum(losses), losses, made, logits_grad};
}

void balance_step(const Tensor& bias, const Tensor& counts, double rate) {
  const Place place(counts);
  const ty_balance_args args = binding::arguments(view(counts), rate, view(bias), std::nullopt);
  check(ty_balance(place.device(), &args, place.stream()));
}

Tensor load_statistics(const Tensor& counts) {
  const Place place(counts);
  Tensor statistics = place.empty({4}, ScalarType::Float);
  const ty_balance_args args = binding::arguments(view(counts), 0, std::nullopt, view(statistics));
  check(ty_balance(place.device(), &args, place.stream()));
  return statistics;
}

}  // namespace tokenyard::torch_binding
