#include "tensors.hpp"

namespace tokenyard::tvm_ffi_binding {
namespace {

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

}  // namespace

binding::View view(const TensorView& tensor) {
  const auto sizes = tensor.shape();
  const auto strides = tensor.strides();
  const Type type = type_of(tensor.dtype());
  auto* data = static_cast<char*>(tensor.data_ptr());
  if (data != nullptr) data += tensor.byte_offset();
  return {data,      device_of(tensor.device()),   type.dtype,
          type.name, {sizes.data(), sizes.size()}, {strides.data(), strides.size()}};
}

std::optional<binding::View> view(const OptionalTensor& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return view(*tensor);
}

Place::Place(const TensorView& tensor) : place_(tensor.device()), device_(device_of(place_)) {}

void* Place::stream() const { return TVMFFIEnvGetStream(place_.device_type, place_.device_id); }

}  // namespace tokenyard::tvm_ffi_binding
