// Derivatives of the scores, and the logarithm, with the same bits on every device: see gate/score.hpp.
#pragma once

#include <bit>
#include <cstdint>

#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::training {

// ds/dx is made of a second sigmoid: of -x for s = sigmoid(x), where it is s (1 - s); of x for
// s = sqrt(softplus(x)), where it is sigmoid(x) / 2s.
TY_DEVICE float second_argument(ty_gate_score score, float x) { return score == TY_GATE_SIGMOID ? -x : x; }

// From x, its score s and the sigmoid of its second argument; 0 at both infinities.
TY_DEVICE float slope_of(ty_gate_score score, float x, float s, float second) {
  if (score == TY_GATE_SIGMOID) return s * second;
  if (x == gate::kInfinity) return 0;
  // Far below 0, s is e^(x/2) and its own derivative, twice; the sigmoid vanishes long before it.
  return x < -40 ? 0.5f * s : second / (s + s);
}

// ln x + offset, for a normal x > 0: x = 2^n m with 1 <= m < 2.
TY_DEVICE float log_of(float x, float offset) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto n = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  const float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f800000u);
  return gate::log_of_one_plus(m - 1.0f, port::fma(n, 0x1.62e430p-1f, offset));
}

}  // namespace tokenyard::training
