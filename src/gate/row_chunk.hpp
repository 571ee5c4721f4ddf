// Neighbouring numbers, loaded at once.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// In whole words, taken apart only when a number is needed: so that nothing waits for one load before the
// next is under way.
template <class T, int kCount>
class Chunk {
 public:
  // From an address that is aligned for all of them.
  TY_DEVICE void load(const T* from) {
    if constexpr (kCount * sizeof(T) < 4) {
      put(0, *from);
    } else {
      words_ = *reinterpret_cast<const Words*>(from);
    }
  }

  // Of a 0 that the compiler does not know: is not used before another has been loaded.
  TY_DEVICE void await(const Chunk& other, uint32_t zero) { words_.word[0] ^= other.words_.word[0] & zero; }

  TY_DEVICE void fill(T value) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) put(i, value);
  }

  // In ascending order.
  TY_DEVICE void put(int i, T value) {
    if constexpr (sizeof(T) == 4) {
      words_.word[i] = std::bit_cast<uint32_t>(value);
    } else {
      const auto bits = static_cast<uint32_t>(value);
      words_.word[i / 2] = i % 2 == 0 ? bits : words_.word[i / 2] | bits << 16;
    }
  }

  // Of 16-bit numbers, two: 2i in the lower half.
  TY_DEVICE uint32_t pair(int i) const { return words_.word[i]; }

  TY_DEVICE float operator[](int i) const {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<float>(words_.word[i]);
    } else if constexpr (std::is_same_v<T, port::bfloat16>) {
      const uint32_t word = words_.word[i / 2];
      return std::bit_cast<float>(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
    } else {
      return port::to_float(static_cast<T>(words_.word[i / 2] >> 16 * (i % 2) & 0xffffu));
    }
  }

 private:
  static constexpr int kWords = (kCount * static_cast<int>(sizeof(T)) + 3) / 4;
  struct alignas(kWords < 4 ? kWords * 4 : 16) Words {
    uint32_t word[kWords];
  };
  Words words_;
};

}  // namespace tokenyard::gate
