// Selection values as keys that order like integers.
#pragma once

#include <bit>
#include <cstdint>

#include "gate/score.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Grows with the value: -0 counts as 0, NaN as -inf.
TY_DEVICE uint32_t key_of(float value) {
  const float canonical = value == value ? value + 0.0f : -kInfinity;
  const uint32_t bits = std::bit_cast<uint32_t>(canonical);
  return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

TY_DEVICE float value_of(uint32_t key) {
  return std::bit_cast<float>(key ^ (key >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}

// The same for signed integers, of a number: more than the lowest integer.
TY_DEVICE int32_t order_of(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ (bits >> 31 & INT32_MAX);
}

TY_DEVICE float of_order(int32_t order) { return std::bit_cast<float>(order ^ (order >> 31 & INT32_MAX)); }

// The key of -inf: of NaN, and of what stands in a group that is not kept. No value has a lower one, so that
// 0 may mean that there is no expert.
inline constexpr uint32_t kLowestKey = 0x007fffffu;

// The sum of a group's two best values, which is -inf if the second is.
TY_DEVICE float sum_of_two(float best, float second) {
  return second == -kInfinity ? -kInfinity : best + second;
}

}  // namespace tokenyard::gate
