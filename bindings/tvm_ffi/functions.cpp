// gate, align and route for whatever speaks DLPack. python/tokenyard/dlpack.py documents the functions.
#include <tvm/ffi/function.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arguments/align.hpp"
#include "arguments/gate.hpp"
#include "arguments/once.hpp"
#include "arguments/route.hpp"
#include "tensors.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::tvm_ffi_binding {
namespace {

void align(const TensorView& topk_ids, int64_t num_experts, int64_t block_size,
           const OptionalTensor& expert_map, Optional<int64_t> num_local_experts, int64_t first_id,
           const TensorView& sorted_pair_ids, const TensorView& block_expert, const TensorView& num_padded,
           const OptionalTensor& counts, const OptionalTensor& offsets, const OptionalTensor& inverse,
           const OptionalTensor& block_rows, const OptionalTensor& num_dropped) {
  guarded([&] {
    const Place place(topk_ids);
    ty_align_args args = binding::arguments(
        {view(topk_ids), num_experts, block_size, view(expert_map), number(num_local_experts), first_id});
    binding::write_to(args,
                      {.sorted_pair_ids = view(sorted_pair_ids),
                       .block_expert = view(block_expert),
                       .num_padded = view(num_padded),
                       .counts = view(counts),
                       .offsets = view(offsets),
                       .inverse = view(inverse),
                       .block_rows = view(block_rows),
                       .num_dropped = view(num_dropped)},
                      place.device());
    binding::run_once(ty_align_once_size, ty_align_once, place.device(), args, place.stream(),
                      place.memory());
  });
}

// An option as binding::GateOptions has it.
template <class Option>
const Option& as_argument(const Option& option) {
  return option;
}
std::string as_argument(const String& option) { return option; }
std::optional<binding::View> as_argument(const OptionalTensor& option) { return view(option); }

// `Option` are the types of gate's options.
template <class... Option>
struct GateFunctions {
  static void gate(const TensorView& logits, int64_t top_k, Option... options, const TensorView& ids,
                   const TensorView& weights, const OptionalTensor& counts,
                   const OptionalTensor& physical_counts) {
    guarded([&] {
      const Place place(logits);
      ty_gate_args args = binding::arguments(view(logits), {top_k, as_argument(options)...});
      binding::write_to(args,
                        {.ids = view(ids),
                         .weights = view(weights),
                         .counts = view(counts),
                         .physical_counts = view(physical_counts)},
                        place.device());
      check(ty_gate(place.device(), &args, place.stream()));
    });
  }

  static void route(const TensorView& logits, int64_t top_k, int64_t block_size, Option... options,
                    const OptionalTensor& expert_map, Optional<int64_t> num_local_experts,
                    const TensorView& ids, const TensorView& weights, const TensorView& sorted_pair_ids,
                    const TensorView& block_expert, const TensorView& num_padded) {
    guarded([&] {
      const Place place(logits);
      ty_gate_args gate;
      ty_align_args order;
      binding::part_of_route([&] {
        gate = binding::arguments(view(logits), {top_k, as_argument(options)...});
        binding::write_to(gate, {.ids = view(ids), .weights = view(weights)}, place.device());
        order = binding::arguments(
            {view(ids), binding::id_bound(gate), block_size, view(expert_map), number(num_local_experts)});
        binding::write_to(order,
                          {.sorted_pair_ids = view(sorted_pair_ids),
                           .block_expert = view(block_expert),
                           .num_padded = view(num_padded)},
                          place.device());
      });
      binding::run_once(ty_route_once_size, ty_route_once, place.device(), binding::arguments(gate, order),
                        place.stream(), place.memory());
    });
  }
};

using Functions = binding::WithGateOptions<GateFunctions, OptionalTensor, String>;

}  // namespace
}  // namespace tokenyard::tvm_ffi_binding

TVM_FFI_DLL_EXPORT_TYPED_FUNC(align, tokenyard::tvm_ffi_binding::align);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(gate, tokenyard::tvm_ffi_binding::Functions::gate);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(route, tokenyard::tvm_ffi_binding::Functions::route);
