// The values that kernels select by.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "gate/quick_score.hpp"
#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// By what: without a bias by the logit, with one by its score and the bias.
enum class Selection { kLogit, kSigmoid, kSqrtSoftplus };

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
