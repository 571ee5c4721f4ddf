// The operations for whatever speaks DLPack, through tvm-ffi. Outputs are the caller's tensors; a call runs
// on the stream that tvm-ffi holds for the device, which it takes over from the framework whose tensors it is
// given. python/tokenyard/dlpack.py documents the functions.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arguments/align.hpp"
#include "arguments/gate.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::tvm_ffi_binding {
namespace {

using tvm::ffi::Optional;
using tvm::ffi::String;
using tvm::ffi::TensorView;

struct Type {
  int32_t dtype;
  const char* name;
};

Type type_of(DLDataType dtype) {
  const auto known = [](ty_dtype type) { return Type{type, binding::name(type)}; };
  const auto other = [](const char* name) { return Type{binding::kOtherType, name}; };
  if (dtype.lanes != 1) return other("vector");
  switch (dtype.code) {
    case kDLInt:
      if (dtype.bits == 32) return known(TY_INT32);
      return dtype.bits == 64 ? known(TY_INT64) : other("int8 or int16");
    case kDLFloat:
      if (dtype.bits == 32) return known(TY_FLOAT32);
      return dtype.bits == 16 ? known(TY_FLOAT16) : other("float64");
    case kDLBfloat:
      return known(TY_BFLOAT16);
    case kDLUInt:
      return other("unsigned");
    default:
      return other("unknown");
  }
}

ty_device device_of(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
    case kDLROCMHost:
      return {TY_CPU, 0};
    case kDLCUDA:
      return {TY_CUDA, device.device_id};
    case kDLROCM:
      return {TY_HIP, device.device_id};
    default:
      throw Error(TY_UNSUPPORTED, "device: DLPack's device type is " + std::to_string(device.device_type) +
                                      ", expected the CPU, CUDA or ROCm: move the tensor");
  }
}

binding::View view(const TensorView& tensor) {
  const auto sizes = tensor.shape();
  const auto strides = tensor.strides();
  const Type type = type_of(tensor.dtype());
  return {tensor.data_ptr(), device_of(tensor.device()),   type.dtype,
          type.name,         {sizes.data(), sizes.size()}, {strides.data(), strides.size()}};
}

std::optional<binding::View> view(const Optional<TensorView>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return view(*tensor);
}

void* stream_of(DLDevice device) { return TVMFFIEnvGetStream(device.device_type, device.device_id); }

// What is refused becomes Python's ValueError.
template <class Call>
void guarded(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    TVM_FFI_THROW(ValueError) << error.what();
  }
}

void align(const TensorView& topk_ids, int64_t num_experts, int64_t block_size,
           const Optional<TensorView>& expert_map, Optional<int64_t> num_local_experts,
           const TensorView& sorted_pair_ids, const TensorView& block_expert, const TensorView& num_padded,
           const Optional<TensorView>& counts, const Optional<TensorView>& offsets,
           const Optional<TensorView>& inverse, const Optional<TensorView>& block_rows,
           const Optional<TensorView>& num_dropped) {
  guarded([&] {
    std::optional<int64_t> local_experts;
    if (num_local_experts.has_value()) local_experts = *num_local_experts;
    const DLDevice place = topk_ids.device();
    const ty_device device = device_of(place);
    ty_align_args args =
        binding::arguments({view(topk_ids), num_experts, block_size, view(expert_map), local_experts});
    binding::write_to(args,
                      {.sorted_pair_ids = view(sorted_pair_ids),
                       .block_expert = view(block_expert),
                       .num_padded = view(num_padded),
                       .counts = view(counts),
                       .offsets = view(offsets),
                       .inverse = view(inverse),
                       .block_rows = view(block_rows),
                       .num_dropped = view(num_dropped)},
                      device);
    binding::run(device, args, stream_of(place), [&](int64_t bytes) {
      return tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, tvm::ffi::Shape{bytes},
                                            DLDataType{kDLUInt, 8, 1}, place);
    });
  });
}

void gate(const TensorView& logits, int64_t top_k, const Optional<TensorView>& bias, const String& score,
          const String& weight_mode, int64_t num_groups, int64_t kept_groups, const String& group_score,
          double epsilon, double scale, int64_t num_shared_experts, const String& shared_mode,
          double shared_weight, const Optional<TensorView>& replicas,
          const Optional<TensorView>& num_replicas, int64_t num_physical_experts,
          const Optional<TensorView>& num_real_tokens, const TensorView& ids, const TensorView& weights,
          const Optional<TensorView>& counts, const Optional<TensorView>& physical_counts) {
  guarded([&] {
    const DLDevice place = logits.device();
    const ty_device device = device_of(place);
    ty_gate_args args = binding::arguments(view(logits), {.top_k = top_k,
                                                          .bias = view(bias),
                                                          .score = score,
                                                          .weight_mode = weight_mode,
                                                          .num_groups = num_groups,
                                                          .kept_groups = kept_groups,
                                                          .group_score = group_score,
                                                          .epsilon = epsilon,
                                                          .scale = scale,
                                                          .num_shared_experts = num_shared_experts,
                                                          .shared_mode = shared_mode,
                                                          .shared_weight = shared_weight,
                                                          .replicas = view(replicas),
                                                          .num_replicas = view(num_replicas),
                                                          .num_physical_experts = num_physical_experts,
                                                          .num_real_tokens = view(num_real_tokens)});
    binding::write_to(args,
                      {.ids = view(ids),
                       .weights = view(weights),
                       .counts = view(counts),
                       .physical_counts = view(physical_counts)},
                      device);
    check(ty_gate(device, &args, stream_of(place)));
  });
}

}  // namespace
}  // namespace tokenyard::tvm_ffi_binding

TVM_FFI_DLL_EXPORT_TYPED_FUNC(align, tokenyard::tvm_ffi_binding::align);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(gate, tokenyard::tvm_ffi_binding::gate);
