// The scores that kernels select by where there is a bias.
#pragma once

#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// 1 / (1 + e^-x) by the device's own exponential and reciprocal, to 4 units in the last place; the same bits
// on every path of a device. Any number for NaN. Weights are not made of it.
template <class Thread>
TY_DEVICE float quick_sigmoid(Thread& gpu, float x) {
  x = port::max(port::min(x, 64.0f), -128.0f);  // beyond, nothing changes
  // e^x = 2^t e^r: t rounds x log2(e), and r is what that loses.
  const float t = x * 0x1.715476p+0f;
  float r = port::fma(t, -0x1.62e430p-1f, x);
  r = port::fma(t, 0x1.05c610p-29f, r);
  const float power = gpu.exp2(t);
  const float z = port::fma(power, r, power);
  return z * gpu.reciprocal(1.0f + z);
}

}  // namespace tokenyard::gate
