// What the fuzzer's bytes become: numbers, and memory that ends where a call's arguments say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tokenyard/tokenyard.h"

namespace tokenyard::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s (last error: \"%s\")\n", what, ty_last_error());
  std::abort();
}

// Values from the fuzzer's bytes; zeros once they are used up.
class Source {
 public:
  Source(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  template <class T>
  T take() {
    T value{};
    const size_t bytes = size_ < sizeof value ? size_ : sizeof value;
    if (bytes > 0) std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }
  // Mostly `low` to `high`; now and then any value at all.
  template <class T>
  T number(T low, T high) {
    const auto choice = take<uint8_t>();
    if (choice >= 250) return take<T>();
    return static_cast<T>(low + (choice * 256 + take<uint8_t>()) % (high - low + 1));
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

// Memory for `count` elements exactly, so that one step beyond it is an error, or a pointer that is not
// usable.
template <class T>
class Buffer {
 public:
  Buffer(Source& source, int64_t count, bool optional) {
    const int choice = source.take<uint8_t>() % 16;
    if (choice == 2 || (optional && choice > 8)) return;
    memory_ = std::make_unique<char[]>(static_cast<size_t>(count) * sizeof(T) + 1);
    misaligned_ = choice == 1;
    if (!misaligned_) memory_ = std::make_unique<char[]>(static_cast<size_t>(count) * sizeof(T));
  }
  T* get() const { return reinterpret_cast<T*>(memory_.get() + (misaligned_ ? 1 : 0)); }

 private:
  std::unique_ptr<char[]> memory_;
  bool misaligned_ = false;
};

// Any bits are logits: a pattern from the fuzzer's bytes, over and over.
template <class T>
void fill(Source& source, T* values, int64_t count) {
  if (values == nullptr) return;
  T pattern[7];
  for (T& value : pattern) value = source.take<T>();
  auto* bytes = reinterpret_cast<char*>(values);
  for (int64_t i = 0; i < count; ++i) std::memcpy(bytes + i * sizeof(T), &pattern[i % 7], sizeof(T));
}

}  // namespace tokenyard::fuzz
