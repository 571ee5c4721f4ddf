// What src/port/floats.hpp promises, on every port: the bits that IEEE 754 asks for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "conformance.hpp"
#include "device_array.hpp"
#include "kernels.hpp"
#include "port/floats.hpp"

namespace tokenyard::tests {

namespace kernels {

struct Rounded {
  float fma, quotient, root, magnitude, max, min, max_or_nan, min_or_nan;
};

struct Arithmetic : TestKernel<> {
  const float* in;  // three for each thread
  Rounded* out;
  Arithmetic(const float* in, Rounded* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const float* const x = in + 3 * self(gpu);
    out[self(gpu)] = {port::fma(x[0], x[1], x[2]),  x[0] / x[1],
                      port::sqrt(port::abs(x[0])),  port::abs(x[0]),
                      port::max(x[0], x[1]),        port::min(x[0], x[1]),
                      port::max_or_nan(x[0], x[1]), port::min_or_nan(x[0], x[1])};
  }
};

struct DivideByOneToTwo : TestKernel<> {
  const float* in;  // two for each thread
  float* out;
  DivideByOneToTwo(const float* in, float* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = port::divide_by_one_to_two(in[2 * self(gpu)], in[2 * self(gpu) + 1]);
  }
};

// Pairs of all 65536 numbers of a 16-bit type, each number in both halves.
template <class Narrow>
struct Numbers : TestKernel<> {
  static constexpr uint32_t kPairs = 1 << 16;
  uint32_t* out;  // [kPairs]
  explicit Numbers(uint32_t* out) : out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    for (auto i = static_cast<uint32_t>(self(gpu)); i < kPairs; i += gpu.blocks() * kThreads) {
      out[i] = port::numbers_of_pair<Narrow>(i | (i * 40503u & 0xffffu) << 16);
    }
  }
};

struct Approximate : TestKernel<> {
  const float* in;  // two for each thread: an exponent, and a number to divide 1 by
  float* out;
  Approximate(const float* in, float* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[2 * self(gpu)] = gpu.exp2(in[2 * self(gpu)]);
    out[2 * self(gpu) + 1] = gpu.reciprocal(in[2 * self(gpu) + 1]);
  }
};

// All 65536 numbers of a 16-bit type.
template <class Narrow>
struct Widen : TestKernel<> {
  static constexpr int kNumbers = 1 << 16;
  float* out;  // [kNumbers]
  explicit Widen(float* out) : out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    for (int i = self(gpu); i < kNumbers; i += gpu.blocks() * kThreads) {
      out[i] = port::to_float(static_cast<Narrow>(i));
    }
  }
};

template <class Narrow>
struct Round : TestKernel<> {
  const float* in;
  uint32_t* out;
  int count;
  Round(const float* in, uint32_t* out, int count) : in(in), out(out), count(count) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    for (int i = self(gpu); i < count; i += gpu.blocks() * kThreads) {
      out[i] = static_cast<uint32_t>(port::round_to<Narrow>(in[i]));
    }
  }
};

}  // namespace kernels

// A sign, `exponent` bits and `fraction` bits, by the definition.
inline double sixteen_bit_number(int bits, int exponent, int fraction) {
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int e = bits >> fraction & ((1 << exponent) - 1);
  const int f = bits & ((1 << fraction) - 1);
  const int offset = (1 << (exponent - 1)) - 1;
  if (e == (1 << exponent) - 1) return f != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * std::ldexp(e == 0 ? f : f + (1 << fraction), (e == 0 ? 1 : e) - offset - fraction);
}

template <class Target>
class FloatConformance : public Conformance<Target> {
 protected:
  // Every number of a 16-bit type rounds to itself, the middle between two to the even one, and what is next
  // to the middle to its side. Beyond the last number, the step goes on.
  template <class Narrow>
  void check_rounding(int exponent, int fraction) {
    const auto number = [=](uint32_t n) {
      return static_cast<float>(sixteen_bit_number(static_cast<int>(n), exponent, fraction));
    };
    const uint32_t infinity = ((1u << exponent) - 1) << fraction;
    std::vector<float> values;
    std::vector<uint32_t> want;
    for (uint32_t n = 0; n < infinity; ++n) {
      const float low = number(n);
      const float below = n == 0 ? 0 : number(n - 1);
      const bool is_last = n + 1 == infinity;
      const float step = is_last ? low - below : number(n + 1) - low;
      const float middle = low + step / 2;
      for (const auto& [value, bits] : {std::pair{low, n},
                                        {std::nextafter(middle, 0.0f), n},
                                        {middle, n + (n & 1)},
                                        {std::nextafter(middle, HUGE_VALF), n + 1}}) {
        values.push_back(n % 2 == 0 ? value : -value);
        want.push_back(n % 2 == 0 ? bits : bits | 0x8000u);
      }
    }
    values.push_back(HUGE_VALF);
    want.push_back(infinity);
    values.push_back(std::nanf(""));
    DeviceArray in(this->runtime(), values);
    DeviceArray<uint32_t> out(this->runtime(), values.size());
    this->launch(kernels::Round<Narrow>(in.data(), out.data(), static_cast<int>(values.size())));
    const auto got = out.values();
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << values[i];
    EXPECT_GT(got.back() & 0x7fffu, infinity) << "NaN";
  }
};

// A 16-bit number's bits, -0 as 0 and NaN as -inf.
inline uint32_t plain_number(uint32_t bits, uint32_t infinity) {
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude == 0) return 0;
  return magnitude > infinity ? infinity | 0x8000u : bits;
}

TYPED_TEST_SUITE_P(FloatConformance);

// Rounded as IEEE 754 says, subnormal numbers included: the host's own arithmetic gives the same bits.
TYPED_TEST_P(FloatConformance, Arithmetic) {
  const auto bits = random_values<uint32_t>(1, 3 * kTotal);
  std::vector<float> values;
  for (size_t i = 0; i < bits.size(); ++i) {
    // Of every size, of nearly the same, or near the subnormal numbers.
    const uint32_t masks[] = {0xffffffffu, 0x807fffffu, 0x80ffffffu};
    const uint32_t mask = masks[i / 3 % 3];
    values.push_back(std::bit_cast<float>((bits[i] & mask) | (mask == 0x807fffffu ? 0x3f800000u : 0)));
  }
  DeviceArray in(this->runtime(), values);
  DeviceArray<kernels::Rounded> out(this->runtime(), kTotal);
  this->launch(kernels::Arithmetic(in.data(), out.data()));
  const auto got = out.values();
  const auto expect_bits = [](float a, float b) {
    if (b == b) {
      EXPECT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b));
    } else {
      EXPECT_NE(a, a);
    }
  };
  for (size_t i = 0; i < kTotal; ++i) {
    expect_bits(got[i].fma, std::fma(values[3 * i], values[3 * i + 1], values[3 * i + 2]));
    expect_bits(got[i].quotient, values[3 * i] / values[3 * i + 1]);
    expect_bits(got[i].root, std::sqrt(std::fabs(values[3 * i])));
    expect_bits(got[i].magnitude, std::fabs(values[3 * i]));
    const float a = values[3 * i], b = values[3 * i + 1];
    const bool has_nan = std::isnan(a) || std::isnan(b);
    const float highest =
        std::isnan(b) || a > b ? a : b;  // the number where one is, also of a NaN that signals
    const float lowest = std::isnan(b) || a < b ? a : b;
    expect_bits(got[i].max, highest);
    expect_bits(got[i].min, lowest);
    expect_bits(got[i].max_or_nan, has_nan ? NAN : highest);
    expect_bits(got[i].min_or_nan, has_nan ? NAN : lowest);
  }
}

// As far as it must go: what is divided is at most the divisor and at least 2^-100, or the divisor is 1, or 0
// is divided.
TYPED_TEST_P(FloatConformance, DivideByOneToTwo) {
  const auto bits = random_values<uint32_t>(1, 2 * kTotal);
  std::vector<float> values;
  for (size_t i = 0; i < bits.size(); i += 2) {
    const bool by_one = i % 8 == 0;
    const float b = by_one ? 1.0f : std::bit_cast<float>(bits[i] >> 9 | 0x3f800000u);
    const double exponent = -(by_one ? 149.0 : i % 8 == 2 ? 100.0 : 25.0) * std::ldexp(bits[i + 1], -32);
    values.push_back(b * static_cast<float>(std::exp2(exponent)));
    values.push_back(b);
  }
  values[0] = 0;
  values[2] = 0;
  DeviceArray in(this->runtime(), values);
  DeviceArray<float> out(this->runtime(), kTotal);
  this->launch(kernels::DivideByOneToTwo(in.data(), out.data()));
  const auto got = out.values();
  for (size_t i = 0; i < kTotal; ++i) {
    const float want = values[2 * i] / values[2 * i + 1];
    EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want));
  }
}

TYPED_TEST_P(FloatConformance, Approximations) {
  const auto bits = random_values<uint32_t>(1, 2 * kTotal);
  std::vector<float> values;
  for (size_t i = 0; i < bits.size(); ++i) {
    const double share = std::ldexp(bits[i], -32);
    values.push_back(static_cast<float>(i % 2 == 0 ? 280 * share - 152 : std::exp2(252 * share - 126)));
  }
  values[0] = -HUGE_VALF;
  values[1] = HUGE_VALF;
  DeviceArray in(this->runtime(), values);
  DeviceArray<float> out(this->runtime(), 2 * kTotal);
  this->launch(kernels::Approximate(in.data(), out.data()));
  const auto got = out.values();
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 0);
  for (size_t i = 2; i < got.size(); ++i) {
    const double x = values[i];
    const double want = i % 2 == 0 ? std::exp2(x) : 1 / x;
    int exponent = 0;
    std::frexp(std::max(want, 0x1p-126), &exponent);
    if (want < 0x1p-126 && got[i] == 0) continue;
    EXPECT_NEAR(got[i], want, std::ldexp(i % 2 == 0 ? 2.01 : 1.01, exponent - 24)) << x;
  }
}

TYPED_TEST_P(FloatConformance, SixteenBitNumbers) {
  constexpr int kNumbers = kernels::Widen<port::float16>::kNumbers;
  DeviceArray<float> halves(this->runtime(), kNumbers);
  DeviceArray<float> brains(this->runtime(), kNumbers);
  this->launch(kernels::Widen<port::float16>(halves.data()));
  this->launch(kernels::Widen<port::bfloat16>(brains.data()));
  const auto got_half = halves.values();
  const auto got_brain = brains.values();
  for (int i = 0; i < kNumbers; ++i) {
    const double half = sixteen_bit_number(i, 5, 10);
    const double brain = sixteen_bit_number(i, 8, 7);
    EXPECT_TRUE(got_half[i] == half || (std::isnan(got_half[i]) && std::isnan(half))) << i;
    EXPECT_TRUE(got_brain[i] == brain || (std::isnan(got_brain[i]) && std::isnan(brain))) << i;
  }
}

TYPED_TEST_P(FloatConformance, RoundsToSixteenBits) {
  this->template check_rounding<port::float16>(5, 10);
  this->template check_rounding<port::bfloat16>(8, 7);
}

TYPED_TEST_P(FloatConformance, NumbersOfPairs) {
  constexpr uint32_t kPairs = kernels::Numbers<port::float16>::kPairs;
  DeviceArray<uint32_t> halves(this->runtime(), kPairs);
  DeviceArray<uint32_t> brains(this->runtime(), kPairs);
  this->launch(kernels::Numbers<port::float16>(halves.data()));
  this->launch(kernels::Numbers<port::bfloat16>(brains.data()));
  const auto got_halves = halves.values();
  const auto got_brains = brains.values();
  for (uint32_t i = 0; i < kPairs; ++i) {
    const uint32_t upper = i * 40503u & 0xffffu;
    EXPECT_EQ(got_halves[i], plain_number(i, 0x7c00u) | plain_number(upper, 0x7c00u) << 16);
    EXPECT_EQ(got_brains[i], plain_number(i, 0x7f80u) | plain_number(upper, 0x7f80u) << 16);
  }
}

REGISTER_TYPED_TEST_SUITE_P(FloatConformance, Arithmetic, DivideByOneToTwo, Approximations, SixteenBitNumbers,
                            RoundsToSixteenBits, NumbersOfPairs);

}  // namespace tokenyard::tests
