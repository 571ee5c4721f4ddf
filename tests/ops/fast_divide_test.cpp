// Division by multiplication, against division.
#include "align/fast_divide.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace tokenyard::align {
namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

void expect_division(int32_t x, int32_t divisor) {
  const FastDivide divide(divisor);
  ASSERT_EQ(divide.floor(x), x / divisor) << x << " / " << divisor;
  ASSERT_EQ(divide.ceil(x), x / divisor + (x % divisor != 0)) << x << " / " << divisor;
}

TEST(FastDivide, AroundMultiplesOfSmallAndLargeDivisors) {
  for (int32_t divisor : {1, 2, 3, 7, 8, 17, 64, 127, 128, 1000003, 1 << 30, kMost - 1, kMost}) {
    for (int64_t quotient : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{kMost} / divisor}) {
      for (int64_t x = quotient * divisor - 1; x <= quotient * divisor + 1; ++x) {
        if (x >= 0 && x <= kMost) expect_division(static_cast<int32_t>(x), divisor);
      }
    }
    expect_division(kMost, divisor);
  }
}

TEST(FastDivide, Random) {
  constexpr uint64_t kSeed = 1;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 200'000; ++i) {
    const auto x = static_cast<int32_t>(random() >> 33);
    const auto divisor = static_cast<int32_t>((random() >> 33) >> (random() % 31)) | 1;
    expect_division(x, divisor);
  }
}

}  // namespace
}  // namespace tokenyard::align
