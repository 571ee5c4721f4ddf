// Scores of logits, the same bits on every device: float32 arithmetic in one order, with each fused
// multiply-add spelt out, so that no compiler has a choice. Over all float32 logits the exponential is within
// 1, the sigmoid within 2.3 and sqrt-softplus within 1.9 units in the last place, where the result is a
// normal number (tests/ops/gate_score_test.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// e^x for x <= 0, down to the subnormal numbers; 0 for -inf.
// x = n ln 2 + r with |r| <= ln(2) / 2; e^r from its minimax polynomial of degree 6; 2^n in two steps, since
// it may be subnormal.
TY_DEVICE float exp_of_negative(float x) {
  constexpr float kToInteger = 0x1.8p23f;  // added and taken away again, it rounds to an integer
  constexpr float kLowest = -105;          // rounds to 0 from here on
  x = x < kLowest ? kLowest : x;
  const float shifted = port::fma(x, 0x1.715476p+0f, kToInteger);
  const float n = shifted - kToInteger;
  float r = port::fma(n, -0x1.62e4p-1f, x);
  r = port::fma(n, -0x1.7f7d1cp-20f, r);
  float q = 0x1.6a23ccp-10f;
  q = port::fma(q, r, 0x1.123a20p-7f);
  q = port::fma(q, r, 0x1.5558f2p-5f);
  q = port::fma(q, r, 0x1.555492p-3f);
  q = port::fma(q, r, 0x1.fffffcp-2f);
  const float power = 1.0f + port::fma(q, r * r, r);
  // n is in the last bits of `shifted`; what is above them is shifted out.
  constexpr uint32_t kExponentOfOne = 127;
  const uint32_t exponents = std::bit_cast<uint32_t>(shifted) + 2 * kExponentOfOne;
  const uint32_t half = exponents >> 1;
  return power * std::bit_cast<float>(half << 23) * std::bit_cast<float>((exponents - half) << 23);
}

// ln(1 + z) for 0 <= z <= 1, as 2 artanh(z / (2 + z)), whose series has odd powers alone. `offset` is added
// before the result is rounded.
TY_DEVICE float log_of_one_plus(float z, float offset) {
  const float u = z / (2.0f + z);
  const float v = u * u;
  float p = 0x1.1ef874p-3f;
  p = port::fma(p, v, 0x1.1eb610p-3f);
  p = port::fma(p, v, 0x1.99d27cp-3f);
  p = port::fma(p, v, 0x1.555500p-2f);
  const float twice = u + u;
  return offset + port::fma(p * v, twice, twice);
}

// 1 / (1 + e^-x)
TY_DEVICE float sigmoid(float x) {
  const float z = exp_of_negative(-port::abs(x));
  return port::divide_by_one_to_two(x < 0 ? z : 1.0f, 1.0f + z);
}

// sqrt(ln(1 + e^x)). That of +inf is a number above all others, so that sums of scores stay finite. Far below
// 0 it is e^(x/2), which lasts twice as long as e^x before it vanishes.
inline constexpr float kSqrtSoftplusOfInfinity = 0x1p121f;
TY_DEVICE float sqrt_softplus(float x) {
  if (x == kInfinity) return kSqrtSoftplusOfInfinity;
  const bool is_far_below = x < -40;
  const float power = exp_of_negative(is_far_below ? 0.5f * x : -port::abs(x));
  return is_far_below ? power : port::sqrt(log_of_one_plus(power, x < 0 ? 0.0f : x));
}

// e^(x - highest), for x <= highest; equal infinities count as equal, so that they share alike.
TY_DEVICE float exp_of_distance(float x, float highest) {
  const float power = exp_of_negative(x == highest ? 0.0f : x - highest);
  return x == -kInfinity ? 0.0f : power;
}

// What a WeightRule computes with, where the bits are to be the same on every device. A NaN's sigmoid is 0.
struct ExactScores {
  static constexpr bool kNanHasNone = false;  // no score: 0
  static TY_DEVICE float exp_of_distance(float x, float highest) { return gate::exp_of_distance(x, highest); }
  static TY_DEVICE float sigmoid(float x) { return gate::sigmoid(x == x ? x : -kInfinity); }
  static TY_DEVICE float sqrt_softplus(float x) { return gate::sqrt_softplus(x); }
  // 0 where b is. 0 has a division of its own, which takes longer.
  static TY_DEVICE float quotient(float a, float b) {
    const float quotient = (a > 0 ? a : 1.0f) / (b > 0 ? b : 1.0f);
    return a > 0 && b > 0 ? quotient : 0;
  }
};

}  // namespace tokenyard::gate
