#include "tensors.hpp"

#include <array>

extern "C" {
// Only a PyTorch with CUDA or ROCm has it, and only there are tensors on such devices.
AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream) __attribute__((weak));
}

namespace tokenyard::torch_binding {
namespace {

int32_t dtype_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Int:
      return TY_INT32;
    case ScalarType::Long:
      return TY_INT64;
    case ScalarType::Float:
      return TY_FLOAT32;
    case ScalarType::BFloat16:
      return TY_BFLOAT16;
    case ScalarType::Half:
      return TY_FLOAT16;
    default:
      return binding::kOtherType;
  }
}

// Operators are registered for the CPU and what PyTorch calls CUDA.
ty_device device_of(const Tensor& tensor) {
  if (tensor.is_cpu()) return {TY_CPU, 0};
  return {TOKENYARD_TORCH_BACKEND, tensor.get_device_index()};
}

}  // namespace

binding::View view(const Tensor& tensor) {
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  const ScalarType dtype = tensor.scalar_type();
  return {tensor.data_ptr(),
          device_of(tensor),
          dtype_of(dtype),
          torch::headeronly::toString(dtype),
          {sizes.data(), sizes.size()},
          {strides.data(), strides.size()}};
}

std::optional<binding::View> view(const std::optional<Tensor>& tensor) {
  if (!tensor) return std::nullopt;
  return view(*tensor);
}

Place::Place(const Tensor& tensor) : device_(device_of(tensor)) {
  if (device_.backend == TY_CPU) return;
  guard_.emplace(device_.ordinal);
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device_.ordinal, &stream_));
}

Tensor Place::empty(std::initializer_list<int64_t> sizes, ScalarType dtype) const {
  std::array<int64_t, 2> strides{1, 1};
  if (sizes.size() == 2) strides[0] = sizes.begin()[1];
  const auto type = torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
  const int32_t place =
      device_.backend == TY_CPU ? aoti_torch_device_type_cpu() : aoti_torch_device_type_cuda();
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.begin(),
                                                  strides.data(), type, place, device_.ordinal, &made));
  return Tensor(made);
}

}  // namespace tokenyard::torch_binding
