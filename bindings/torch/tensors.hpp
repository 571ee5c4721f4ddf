// What the operators ask of tensors, over PyTorch's stable ABI: one build runs with every PyTorch from
// TORCH_TARGET_VERSION on. Mistakes become std::runtime_error, which Python sees as RuntimeError.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard::torch_binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Throws what the C ABI reports.
void check(ty_status status);

// Throws "operation: argument is got, expected expected: remedy".
[[noreturn]] void refuse(const char* operation, const char* argument, const std::string& got,
                         const std::string& expected, const char* remedy);

// Where a tensor lives, its device made current for as long as this exists, and the stream that is current
// there.
class Place {
 public:
  Place(const char* operation, const Tensor& tensor);

  ty_device device() const { return device_; }
  void* stream() const { return stream_; }  // nullptr on the CPU

  // New and contiguous, not initialised.
  Tensor empty(std::initializer_list<int64_t> sizes, ScalarType dtype) const;

 private:
  ty_device device_;
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
  void* stream_ = nullptr;
  int32_t type_;
};

// An argument of the C ABI's width.
int32_t to_int32(const char* operation, const char* argument, int64_t value);

std::string shape(const Tensor& tensor);
std::string name(ScalarType dtype);

// How an operator takes a matrix: contiguous rows, any distance apart.
struct Rows {
  const void* data;
  int64_t count;
  int32_t columns;
  int64_t stride;
};
Rows rows_of(const char* operation, const char* argument, const Tensor& tensor);

// The elements of a tensor that a kernel reads or writes as they lie: on the given device, contiguous, of a
// type and, unless `elements` is negative, of a size. nullptr for no tensor.
void* elements_of(const char* operation, const char* argument, const std::optional<Tensor>& tensor,
                  const Place& place, ScalarType dtype, int64_t elements);

}  // namespace tokenyard::torch_binding
