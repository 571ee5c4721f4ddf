// PyTorch's tensors, over its stable ABI: one build runs with every PyTorch from TORCH_TARGET_VERSION on.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "arguments/view.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::torch_binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

binding::View view(const Tensor& tensor);
std::optional<binding::View> view(const std::optional<Tensor>& tensor);

// Where a tensor lives: its device, made current for as long as this exists, and the stream that is current
// there.
class Place {
 public:
  explicit Place(const Tensor& tensor);

  ty_device device() const { return device_; }
  void* stream() const { return stream_; }  // nullptr on the CPU

  // New and contiguous, not initialised.
  Tensor empty(std::initializer_list<int64_t> sizes, ScalarType dtype) const;

 private:
  ty_device device_;
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
  void* stream_ = nullptr;
};

}  // namespace tokenyard::torch_binding
