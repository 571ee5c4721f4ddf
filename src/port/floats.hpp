// Floating point with the same bits on every device: what IEEE 754 rounds exactly, and 16-bit numbers as
// float32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "port/port.hpp"

namespace tokenyard::port {

// max and min take the other number where one is NaN; max_or_nan and min_or_nan are NaN there.
// divide_by_one_to_two(a, b) is a / b to the last bit where b is 1 to 2 and a at most b and at least 2^-100,
// or b is 1, or a is 0: without the branch for numbers that are too large or too small for it.
#if defined(__CUDACC__) && !defined(__HIP__)
TY_DEVICE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
TY_DEVICE float sqrt(float x) { return ::sqrtf(x); }
TY_DEVICE float abs(float x) { return ::fabsf(x); }
TY_DEVICE float max(float a, float b) { return ::fmaxf(a, b); }
TY_DEVICE float min(float a, float b) { return ::fminf(a, b); }
TY_DEVICE float divide_by_one_to_two(float a, float b) {
#ifdef __CUDA_ARCH__
  float estimate;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(b));
  const float reciprocal = fma(fma(-b, estimate, 1.0f), estimate, estimate);
  const float quotient = a * reciprocal;
  return fma(fma(-b, quotient, a), reciprocal, quotient);
#else
  return a / b;
#endif
}
TY_DEVICE float max_or_nan(float a, float b) {
  float highest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(highest) : "f"(a), "f"(b));
  return highest;
}
TY_DEVICE float min_or_nan(float a, float b) {
  float lowest;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(lowest) : "f"(a), "f"(b));
  return lowest;
}
#else  // not the functions of the standard library, which a HIP compiler may know for the host alone
TY_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TY_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
TY_DEVICE float abs(float x) { return __builtin_fabsf(x); }
#ifdef __HIP__
TY_DEVICE float max(float a, float b) { return __builtin_fmaxf(a, b); }
TY_DEVICE float min(float a, float b) { return __builtin_fminf(a, b); }
#else  // the C library returns a NaN that signals
TY_DEVICE float max(float a, float b) { return a > b || b != b ? a : b; }
TY_DEVICE float min(float a, float b) { return a < b || b != b ? a : b; }
#endif
TY_DEVICE float divide_by_one_to_two(float a, float b) { return a / b; }
TY_DEVICE float max_or_nan(float a, float b) { return a > b || a != a ? a : b; }
TY_DEVICE float min_or_nan(float a, float b) { return a < b || a != a ? a : b; }
#endif

// Carried as their bits: no compiler has a type for both that works in device and host code alike.
enum class bfloat16 : uint16_t {};
enum class float16 : uint16_t {};

TY_DEVICE float to_float(float value) { return value; }

TY_DEVICE float to_float(bfloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

// The exponent and the fraction move into place; a factor of 2^112 corrects the exponent's offset, also of
// subnormal numbers. Infinity and NaN get float32's exponent.
TY_DEVICE float to_float(float16 value) {
  const auto bits = static_cast<uint32_t>(value);
  const uint32_t magnitude = (bits & 0x7fffu) << 13;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t finite_or_not = magnitude < 0x0f800000u ? scaled : magnitude | 0x7f800000u;
  return std::bit_cast<float>(finite_or_not | (bits & 0x8000u) << 16);
}

// Two 16-bit numbers in a word, -0 as 0 and NaN as -inf.
template <class T>
TY_DEVICE uint32_t numbers_of_pair(uint32_t pair) {
  constexpr bool kBrain = std::is_same_v<T, bfloat16>;
#ifdef __CUDA_ARCH__
  uint32_t numbers;
  if constexpr (kBrain) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(numbers) : "r"(pair), "r"(0x3f803f80u), "r"(0u));
    asm("max.bf16x2 %0, %0, %1;" : "+r"(numbers) : "r"(0xff80ff80u));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(numbers) : "r"(pair), "r"(0x3c003c00u), "r"(0u));
    asm("max.f16x2 %0, %0, %1;" : "+r"(numbers) : "r"(0xfc00fc00u));
  }
  return numbers;
#else
  constexpr uint32_t kInfinite = kBrain ? 0x7f80u : 0x7c00u;
  const auto number_of = [](uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffu;
    const uint32_t number = magnitude > kInfinite ? kInfinite | 0x8000u : bits;
    return magnitude == 0 ? 0 : number;
  };
  return number_of(pair >> 16) << 16 | number_of(pair & 0xffffu);
#endif
}

// All ones in each half of a word that is negative.
TY_DEVICE uint32_t signs_of_pair(uint32_t pair) {
#ifdef __CUDA_ARCH__
  uint32_t signs;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(signs) : "r"(pair));
  return signs;
#else
  return (pair >> 15 & 0x00010001u) * 0xffffu;
#endif
}

// float32 as another type, rounded to the nearest, of two to the even one; NaN stays NaN.
template <class T>
TY_DEVICE T round_to(float value);

template <>
TY_DEVICE float round_to<float>(float value) {
  return value;
}

template <>
TY_DEVICE bfloat16 round_to<bfloat16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = value == value ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x00400000u;
  return static_cast<bfloat16>(static_cast<uint16_t>(rounded >> 16));
}

// Below 2^-14 the sum with 1/2 has the steps of a subnormal float16, and rounds to them.
template <>
TY_DEVICE float16 round_to<float16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  if (magnitude < 0x38800000u) {
    rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  }
  if (magnitude >= 0x47800000u) rounded = 0x7c00u;
  if (value != value) rounded = 0x7e00u;
  return static_cast<float16>(static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u)));
}

}  // namespace tokenyard::port
