// Division by a number that is fixed for a launch: a multiplication, an addition and a shift.
// After Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// x / d for 0 <= x < 2^31, 1 <= d < 2^31, rounded down or up.
// With l = ceil(log2 d), s = 31 + l and m = ceil(2^s / d): m * d - 2^s < d <= 2^l, so x * m / 2^s is above
// the quotient by less than 1 / d, and rounds down to the same. To round up add 1 - 1 / d before, in units of
// 2^-s rounded up: x = q * d stays below q + 1 as the error does below 1 / d, and x = q * d + 1 reaches it.
class FastDivide {
 public:
  explicit FastDivide(int32_t divisor) : divisor_(divisor) {
    while (uint64_t{1} << (shift_ - 31) < static_cast<uint64_t>(divisor)) ++shift_;
    const uint64_t one = uint64_t{1} << shift_;
    multiplier_ = static_cast<uint32_t>((one + divisor - 1) / divisor);
    almost_one_ = one - one / divisor;
  }

  TY_DEVICE int32_t divisor() const { return divisor_; }
  TY_DEVICE int32_t floor(int32_t x) const { return quotient(product(x)); }
  TY_DEVICE int32_t ceil(int32_t x) const { return quotient(product(x) + almost_one_); }

 private:
  TY_DEVICE uint64_t product(int32_t x) const { return uint64_t{static_cast<uint32_t>(x)} * multiplier_; }
  TY_DEVICE int32_t quotient(uint64_t scaled) const { return static_cast<int32_t>(scaled >> shift_); }

  int32_t divisor_;
  uint32_t multiplier_;
  uint64_t almost_one_;
  int32_t shift_ = 31;
};

}  // namespace tokenyard::align
