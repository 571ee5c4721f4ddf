// Tensors as the C ABI takes them, of whatever framework, and what is refused before it sees them. Mistakes
// are tokenyard::Error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tokenyard/tokenyard.h"

namespace tokenyard::binding {

// Borrows from a framework's tensor.
struct View {
  void* data;
  ty_device device;
  int32_t dtype;                            // ty_dtype, or kOtherType
  const char* dtype_name;                   // for sentences
  std::span<const int64_t> sizes, strides;  // in elements
};
inline constexpr int32_t kOtherType = -1;

const char* name(ty_dtype dtype);
std::string shape(const View& view);
int64_t elements(const View& view);

// Throws "operation: argument is got, expected expected: remedy".
[[noreturn]] void refuse(const char* operation, const char* argument, const std::string& got,
                         const std::string& expected, const char* remedy);

int32_t to_int32(const char* operation, const char* argument, int64_t value);

// A matrix of contiguous rows, any distance apart.
struct Rows {
  const void* data;
  int64_t count;
  int32_t columns;
  int64_t stride;  // 0: contiguous
};
Rows rows_of(const char* operation, const char* argument, const View& view);

// The elements of a tensor that is read or written as it lies: contiguous, on the device of the call, of a
// type and a number. nullptr for no tensor.
void* elements_of(const char* operation, const char* argument, const std::optional<View>& view,
                  ty_device device, int32_t dtype, int64_t number);

}  // namespace tokenyard::binding
