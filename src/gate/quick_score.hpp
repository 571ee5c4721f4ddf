// Scores by the device's own exponential and reciprocal: the same bits on every path of one device, and
// within a few units in the last place of those of score.hpp, which are the same on every device. What is
// below the normal numbers may be 0.
#pragma once

#include <limits>
#include <type_traits>

#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// 1 / (1 + e^-x) to 4 units in the last place. NaN for NaN, infinities and, of float32, some numbers beyond
// 10^37.
template <class Logit, class Thread>
TY_DEVICE float quick_sigmoid(Thread& gpu, float x) {
  // e^-x = 2^t (1 + r): t is -x log2(e) as far as it is a float32 number, r what that loses.
  float t, one_and_r;
  if constexpr (std::is_same_v<Logit, port::bfloat16>) {
    t = x * -0x1.7154p+0f;  // 15 bits by 8: exact
    one_and_r = port::fma(x, -0x1.480fb6p-18f, 1.0f);
  } else {
    t = x * -0x1.715476p+0f;
    const float lost = port::fma(x, -0x1.4ae0cp-26f, port::fma(x, -0x1.715476p+0f, -t));
    one_and_r = port::fma(lost, 0x1.62e43p-1f, 1.0f);
  }
  return gpu.reciprocal(port::fma(gpu.exp2(t), one_and_r, 1.0f));
}

// The same for every number and for infinities; NaN for NaN.
template <class Logit, class Thread>
TY_DEVICE float safe_quick_sigmoid(Thread& gpu, float x) {
  constexpr float kEnd = 128;  // beyond, nothing changes
  return quick_sigmoid<Logit>(gpu, port::min_or_nan(port::max_or_nan(x, -kEnd), kEnd));
}

// e^(x - highest), for x <= highest, to 4 units in the last place; 1 where both are +inf, 0 for -inf and NaN.
template <class Thread>
TY_DEVICE float quick_exp_of_distance(Thread& gpu, float x, float highest) {
  constexpr float kEnd = -128;  // beyond, nothing changes
  const float distance = port::max(x == highest ? 0.0f : x - highest, kEnd);
  const float t = distance * 0x1.715476p+0f;
  const float lost = port::fma(distance, 0x1.4ae0cp-26f, port::fma(distance, 0x1.715476p+0f, -t));
  const float power = gpu.exp2(t) * port::fma(lost, 0x1.62e43p-1f, 1.0f);
  return x == -kInfinity ? 0.0f : power;
}

// The same for a sum over a row, in which terms far from the highest, where it is less exact, count little.
// 0 for NaN; where all are -inf it may be anything finite.
template <class Thread>
TY_DEVICE float quick_term(Thread& gpu, float x, float highest) {
  const float distance = port::min(port::max(x, -kInfinity) - highest, 0.0f);  // 0 for equal infinities
  return gpu.exp2(distance * 0x1.715476p+0f);
}

// What a WeightRule computes with, on the device. NaN has a score of 0.
template <class Logit, class Thread>
class QuickScores {
 public:
  static constexpr bool kNanHasNone = true;
  explicit TY_DEVICE QuickScores(Thread& gpu) : gpu_(gpu) {}

  TY_DEVICE float exp_of_distance(float x, float highest) const {
    return quick_exp_of_distance(gpu_, x, highest);
  }
  TY_DEVICE float sigmoid(float x) const { return safe_quick_sigmoid<Logit>(gpu_, x == x ? x : -kInfinity); }
  TY_DEVICE float sqrt_softplus(float x) const { return x == x ? gate::sqrt_softplus(x) : 0; }
  // Of b up to 2^126. 0 where both are.
  TY_DEVICE float quotient(float a, float b) const {
    constexpr float kLowest = std::numeric_limits<float>::min();  // of those that have a reciprocal
    return a * gpu_.reciprocal(port::max(b, kLowest));
  }

 private:
  Thread& gpu_;
};

}  // namespace tokenyard::gate
