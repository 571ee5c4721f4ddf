// Division by a number that is fixed for a launch: a multiplication and a shift.
// After Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// x / divisor for 0 <= x < 2^31, 1 <= divisor < 2^31.
// With l = ceil(log2 d) and m = ceil(2^(31+l) / d): m * d - 2^(31+l) < d <= 2^l, so the error of
// x * m / 2^(31+l) stays below 1/d. The upper half of 2x * m is x * m / 2^31.
class FastDivide {
 public:
  explicit FastDivide(int32_t divisor) : divisor_(divisor) {
    while ((int64_t{1} << shift_) < divisor) ++shift_;
    multiplier_ = static_cast<uint32_t>(((uint64_t{1} << (31 + shift_)) + divisor - 1) / divisor);
  }

  TY_DEVICE int32_t divisor() const { return divisor_; }
  TY_DEVICE int32_t floor(int32_t x) const {
    const uint64_t product = uint64_t{2 * static_cast<uint32_t>(x)} * multiplier_;
    return static_cast<int32_t>(static_cast<uint32_t>(product >> 32) >> shift_);
  }
  TY_DEVICE int32_t ceil(int32_t x) const {
    const int32_t quotient = floor(x);
    return quotient + (quotient * divisor_ != x);
  }

 private:
  int32_t divisor_;
  int32_t shift_ = 0;
  uint32_t multiplier_;
};

}  // namespace tokenyard::align
