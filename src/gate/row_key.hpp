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
// logit leaves room for the expert in one word. The highest bit is free, so that differences keep their sign.
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

  // 1 if `other` is above, else 0.
  static TY_DEVICE int is_above(Type other, Type key) {
    constexpr int kSign = 8 * sizeof(Type) - 1;
    return static_cast<int>(static_cast<std::make_unsigned_t<Type>>(key - other) >> kSign);
  }
};

}  // namespace tokenyard::gate
