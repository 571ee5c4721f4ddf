// The router's training for whatever speaks DLPack. python/tokenyard/dlpack.py documents the functions.
#include "arguments/training.hpp"

#include <tvm/ffi/function.h>

#include <cstdint>

#include "tensors.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::tvm_ffi_binding {
namespace {

void gate_backward(const TensorView& weights_grad, const TensorView& logits, const TensorView& ids,
                   int64_t top_k, const String& score, const String& weight_mode, double epsilon,
                   double scale, const TensorView& logits_grad) {
  guarded([&] {
    const Place place(logits);
    ty_gate_backward_args args = binding::arguments(
        {view(weights_grad), view(logits), view(ids), top_k, score, weight_mode, epsilon, scale});
    binding::write_to(args, view(logits_grad), place.device());
    check(ty_gate_backward(place.device(), &args, place.stream()));
  });
}

void router_loss(const TensorView& logits, const OptionalTensor& ids, Optional<int64_t> top_k,
                 const OptionalTensor& sequence_offsets, const String& score, double balance_coefficient,
                 double z_coefficient, const TensorView& losses, const TensorView& scratch,
                 const OptionalTensor& counts, const OptionalTensor& logits_grad) {
  guarded([&] {
    const Place place(logits);
    ty_router_loss_args args =
        binding::arguments({view(logits), view(ids), number(top_k), view(sequence_offsets), score,
                            balance_coefficient, z_coefficient});
    binding::write_to(args,
                      {.losses = view(losses),
                       .scratch = view(scratch),
                       .counts = view(counts),
                       .logits_grad = view(logits_grad)},
                      place.device());
    check(ty_router_loss(place.device(), &args, place.stream()));
  });
}

void balance(const TensorView& counts, double rate, const OptionalTensor& bias,
             const OptionalTensor& statistics) {
  guarded([&] {
    const Place place(counts);
    const ty_balance_args args = binding::arguments(view(counts), rate, view(bias), view(statistics));
    check(ty_balance(place.device(), &args, place.stream()));
  });
}

}  // namespace
}  // namespace tokenyard::tvm_ffi_binding

TVM_FFI_DLL_EXPORT_TYPED_FUNC(gate_backward, tokenyard::tvm_ffi_binding::gate_backward);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(router_loss, tokenyard::tvm_ffi_binding::router_loss);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(balance, tokenyard::tvm_ffi_binding::balance);
