// A selection value and its expert as one integer.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gate/order.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Grows with the value; of equal values the lower expert is above. No two of a row are the same. A bfloat16
// logit leaves room for the expert in one word.
template <class Logit, bool kBiased>
struct RowKey {
  static constexpr bool kShort = !kBiased && std::is_same_v<Logit, port::bfloat16>;
  static constexpr int kExpertBits = kShort ? 15 : 16;
  static constexpr int32_t kLastExpert = (1 << kExpertBits) - 1;
  using Type = std::conditional_t<kShort, int32_t, int64_t>;
  static constexpr Type kNobody = 0;  // below every other

  // Not of NaN.
  static TY_DEVICE Type of(float value, int32_t expert) {
    const float canonical = kBiased ? value : value + 0.0f;  // -0 equals 0; no score and bias add up to -0
    const uint32_t order = static_cast<uint32_t>(order_of(canonical)) ^ 0x80000000u;
    return static_cast<Type>(kShort ? order >> 16 : order) << kExpertBits | (kLastExpert - expert);
  }

  static TY_DEVICE int32_t expert(Type key) { return kLastExpert - static_cast<int32_t>(key & kLastExpert); }

  static TY_DEVICE float value(Type key) {
    const auto order = static_cast<uint32_t>(key >> kExpertBits);
    if constexpr (kShort) {
      const auto bits = static_cast<int32_t>((order ^ 0x8000u) << 16);
      return std::bit_cast<float>(bits ^ (bits >> 31 & 0x7fff0000));
    } else {
      return of_order(static_cast<int32_t>(order ^ 0x80000000u));
    }
  }
};

// Both as they are, for a while.
struct RowCell {
  static TY_DEVICE int64_t of(float value, int32_t expert) {
    return static_cast<int64_t>(static_cast<uint64_t>(std::bit_cast<uint32_t>(value)) << 32 |
                                static_cast<uint32_t>(expert));
  }
  static TY_DEVICE int32_t expert(int64_t cell) { return static_cast<int32_t>(cell); }
  static TY_DEVICE float value(int64_t cell) {
    return std::bit_cast<float>(static_cast<uint32_t>(static_cast<uint64_t>(cell) >> 32));
  }
};

// A key in one word, of values that reach a bound: how far above it, and the expert.
struct ShortKey {
  uint32_t key;  // 0: nobody
  bool is_far;   // too far, and has no key
};

template <int kExperts>
struct ShortKeys {
  static constexpr int kExpertBits = std::bit_width(static_cast<unsigned>(kExperts - 1));
  static constexpr int32_t kLastExpert = (1 << kExpertBits) - 1;

  static TY_DEVICE ShortKey of(float value, float bound, int32_t expert) {
    const uint32_t distance = static_cast<uint32_t>(order_of(value)) - static_cast<uint32_t>(order_of(bound));
    return {(distance << kExpertBits | static_cast<uint32_t>(kLastExpert - expert)) + 1,
            distance >= (0xffffffffu >> kExpertBits)};
  }

  static TY_DEVICE int32_t expert(uint32_t key) {
    return kLastExpert - static_cast<int32_t>((key - 1) & kLastExpert);
  }

  static TY_DEVICE float value(uint32_t key, float bound) {
    return of_order(
        static_cast<int32_t>(((key - 1) >> kExpertBits) + static_cast<uint32_t>(order_of(bound))));
  }
};

}  // namespace tokenyard::gate
