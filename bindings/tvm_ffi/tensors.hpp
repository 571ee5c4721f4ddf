// tvm-ffi's tensors, whatever framework they are from. Outputs are the caller's; a call runs on the stream
// that tvm-ffi holds for the device, which it takes over from the framework whose tensors it is given.
#pragma once

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arguments/view.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::tvm_ffi_binding {

using tvm::ffi::Optional;
using tvm::ffi::String;
using tvm::ffi::TensorView;
using OptionalTensor = Optional<TensorView>;

binding::View view(const TensorView& tensor);
std::optional<binding::View> view(const OptionalTensor& tensor);

inline std::optional<int64_t> number(const Optional<int64_t>& given) {
  return given.has_value() ? std::optional<int64_t>(*given) : std::nullopt;
}

// Where a tensor lives, and the stream that is current there.
class Place {
 public:
  explicit Place(const TensorView& tensor);

  ty_device device() const { return device_; }
  void* stream() const;

  // Of the framework that the tensors are from, if it has given tvm-ffi an allocator.
  auto memory() const {
    return [place = place_](int64_t bytes) {
      return tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, tvm::ffi::Shape{bytes},
                                            DLDataType{kDLUInt, 8, 1}, place);
    };
  }

 private:
  DLDevice place_;
  ty_device device_;
};

// What is refused becomes Python's ValueError.
template <class Call>
void guarded(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    TVM_FFI_THROW(ValueError) << error.what();
  }
}

}  // namespace tokenyard::tvm_ffi_binding
