// The device memory of one call: guarded buffers for what goes in, which must come out as it was, and for
// what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "harness/guarded_buffer.hpp"
#include "harness/tensor_bytes.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

class CallMemory {
 public:
  // Buffers are moved off their 256-byte alignment by `misalignment` elements, and filled on `stream`: see
  // AlignOptions.
  Status open(ty_device device, int misalignment, Stream stream);

  // Each allocates a buffer and says where it is. Names appear in errors.
  Status input(const char* name, size_t element_bytes, Bytes contents, const void** address);
  Status output(const char* name, size_t element_bytes, size_t elements, void** address);
  Status changed_in_place(const char* name, size_t element_bytes, Bytes contents, void** address);

  template <class T>
  Status input(const char* name, const std::vector<T>& values, const T** address) {
    const void* where = nullptr;
    TY_RETURN_IF_ERROR(input(name, sizeof(T), bytes_of(values), &where));
    *address = static_cast<const T*>(where);
    return {};
  }
  template <class T>
  Status output(const char* name, size_t elements, T** address) {
    void* where = nullptr;
    TY_RETURN_IF_ERROR(output(name, sizeof(T), elements, &where));
    *address = static_cast<T*>(where);
    return {};
  }

  // Another content of the same size for an input.
  Status replace(const void* input, Bytes contents);

  // Outputs and their guards; what is changed in place is set back.
  Status poison();

  // After a synchronise: whether all guards and inputs are as they were.
  Status check() const;

  // What a buffer holds; nothing for nullptr.
  Status read(const void* address, Bytes& contents) const;

  template <class T>
  Status read(const T* address, std::vector<T>& values) const {
    Bytes contents;
    TY_RETURN_IF_ERROR(read(static_cast<const void*>(address), contents));
    values.resize(contents.size() / sizeof(T));
    if (!contents.empty()) std::memcpy(values.data(), contents.data(), contents.size());
    return {};
  }

 private:
  enum class Kind { kInput, kOutput, kChangedInPlace };
  struct Buffer {
    const char* name;
    Kind kind;
    GuardedBuffer memory;
    Bytes contents;  // at first; empty for outputs
  };

  Status add(const char* name, Kind kind, size_t element_bytes, size_t bytes, Bytes contents, void** address);

  Runtime* runtime_ = nullptr;
  int misalignment_ = 0;
  Stream stream_ = nullptr;
  std::vector<Buffer> buffers_;
};

}  // namespace tokenyard::harness
