// A small generator (xorshift64*): a scheduling decision costs a few cycles.
#pragma once

#include <bit>
#include <cstdint>

namespace tokenyard::port::simt {

class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15u) {
    if (state_ == 0) state_ = 1;
    for (int i = 0; i < 4; ++i) next();  // neighbouring seeds start alike
  }

  // 0 <= below(n) < n
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((uint64_t{next()} * n) >> 32); }

  // An element of a list of few.
  template <class T, size_t N>
  T one_of(const T (&choices)[N]) {
    return choices[below(N)];
  }

  // The index of a set bit of a mask that has no bit from `width` on.
  int bit_of(uint64_t mask, int width) {
    const int start = static_cast<int>(below(static_cast<uint32_t>(width)));
    return (start + std::countr_zero(std::rotr(mask, start))) & 63;
  }

 private:
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }

  uint64_t state_;
};

}  // namespace tokenyard::port::simt
