// A 16-bit logit and its expert in one word.
#pragma once

#include <cstdint>

#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Grows with the logit; of equal ones the lower expert is above. No two of a row are the same.
template <class Logit>
struct PackedKey {
  static_assert(sizeof(Logit) == 2);
  static constexpr int32_t kLastExpert = 0xffff;
  using Type = int32_t;

  // Of two neighbours, the first of them `expert`. Of numbers: as numbers_of_pair() leaves them.
  static TY_DEVICE void of_pair(uint32_t numbers, int32_t expert, int32_t* key) {
    const uint32_t order = numbers ^ (port::signs_of_pair(numbers) & 0x7fff7fffu);
    const auto last = static_cast<uint32_t>(kLastExpert - expert);
    key[0] = static_cast<int32_t>(order << 16 | last);
    key[1] = static_cast<int32_t>((order & 0xffff0000u) | (last - 1));
  }

  static TY_DEVICE int32_t expert(int32_t key) { return kLastExpert - (key & kLastExpert); }

  static TY_DEVICE float value(int32_t key) {
    const int32_t order = key >> 16;
    return port::to_float(static_cast<Logit>(static_cast<uint16_t>(order ^ (order >> 15 & 0x7fff))));
  }
};

}  // namespace tokenyard::gate
