// The values that kernels select by.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// By what: without a bias by the logit, with one by its score and the bias.
enum class Selection { kLogit, kSigmoid, kSqrtSoftplus };

// 1 / (1 + e^-x) by the device's own exponential and reciprocal, to 4 units in the last place, 0 where it is
// below the normal numbers; the same bits on every path of a device. NaN for NaN, infinities and, of
// float32, some numbers beyond 10^37. Weights are not made of it.
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

// The same for every number and for infinities.
template <class Logit, class Thread>
TY_DEVICE float safe_quick_sigmoid(Thread& gpu, float x) {
  constexpr float kEnd = 128;  // beyond, nothing changes
  return quick_sigmoid<Logit>(gpu, port::min_or_nan(port::max_or_nan(x, -kEnd), kEnd));
}

// The selection value; NaN where safe_selection_value() is needed.
template <Selection kSelection, class Logit, class Thread>
TY_DEVICE float selection_value(Thread& gpu, float x, float bias) {
  if constexpr (kSelection == Selection::kSigmoid) return quick_sigmoid<Logit>(gpu, x) + bias;
  if constexpr (kSelection == Selection::kSqrtSoftplus) return x == x ? sqrt_softplus(x) + bias : -kInfinity;
  return x;
}

template <Selection kSelection, class Logit, class Thread>
TY_DEVICE float safe_selection_value(Thread& gpu, float x, float bias) {
  if constexpr (kSelection == Selection::kSigmoid) {
    return port::max(safe_quick_sigmoid<Logit>(gpu, x) + bias, -kInfinity);
  } else {
    return selection_value<kSelection, Logit>(gpu, x, bias);
  }
}

// -inf as a logit.
template <class Logit>
inline constexpr Logit kMinusInfinity = {};
template <>
inline constexpr float kMinusInfinity<float> = -std::numeric_limits<float>::infinity();
template <>
inline constexpr port::bfloat16 kMinusInfinity<port::bfloat16> = port::bfloat16{0xff80};
template <>
inline constexpr port::float16 kMinusInfinity<port::float16> = port::float16{0xfc00};

}  // namespace tokenyard::gate
