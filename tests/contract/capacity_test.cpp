// The capacity functions against what routings really need.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "tokenyard/tokenyard.h"

namespace tokenyard::test {
namespace {

// The most slots that `pairs` pairs fill when they may go to any of `experts` experts, or be dropped: tries
// every number of pairs for the first expert, then the others with the rest.
int64_t worst_routing(int64_t pairs, int32_t experts, int32_t block) {
  if (experts == 0) return 0;
  int64_t worst = 0;
  for (int64_t first = 0; first <= pairs; ++first) {
    const int64_t slots = (first + block - 1) / block * block;
    worst = std::max(worst, slots + worst_routing(pairs - first, experts - 1, block));
  }
  return worst;
}

TEST(Capacity, MinimumIsWhatTheWorstRoutingNeeds) {
  for (int64_t pairs = 0; pairs <= 12; ++pairs) {
    for (int32_t experts = 1; experts <= 5; ++experts) {
      for (int32_t block = 1; block <= 7; ++block) {
        ASSERT_EQ(ty_align_min_capacity(pairs, experts, block), worst_routing(pairs, experts, block))
            << pairs << " pairs, " << experts << " experts, blocks of " << block;
      }
    }
  }
}

TEST(Capacity, DefaultIsAMultipleOfTheBlockAndNeverLessThanTheMinimum) {
  for (int64_t pairs : {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 131072}) {
    for (int32_t experts : {1, 2, 8, 9, 256, 4096}) {
      for (int32_t block : {1, 2, 3, 16, 17, 64, 128}) {
        const int64_t slots = ty_align_capacity(pairs, experts, block);
        EXPECT_EQ(slots % block, 0);
        EXPECT_GE(slots, ty_align_min_capacity(pairs, experts, block));
      }
    }
  }
}

TEST(Capacity, DefaultIsThePublishedFormula) {
  EXPECT_EQ(ty_align_capacity(8, 256, 128), 8 * 128);                              // few pairs: a block each
  EXPECT_EQ(ty_align_capacity(16384 * 8, 256, 128), 16384 * 8 + 256 * 128 - 256);  // a multiple already
  EXPECT_EQ(ty_align_capacity(1001, 8, 16), 1136);                                 // 1121, rounded up
  EXPECT_EQ(ty_align_capacity(0, 8, 16), 0);
}

TEST(Capacity, OutOfRangeIsMinusOne) {
  for (const auto function : {ty_align_capacity, ty_align_min_capacity}) {
    EXPECT_EQ(function(-1, 8, 16), -1);
    EXPECT_EQ(function(int64_t{INT_MAX} + 1, 8, 16), -1);
    EXPECT_EQ(function(INT64_MAX, 8, 16), -1);
    EXPECT_EQ(function(8, 0, 16), -1);
    EXPECT_EQ(function(8, -1, 16), -1);
    EXPECT_EQ(function(8, 4097, 16), -1);
    EXPECT_EQ(function(8, 8, 0), -1);
    EXPECT_EQ(function(8, 8, INT_MIN), -1);
  }
}

TEST(Capacity, TheLastThatFitsInInt32) {
  for (const auto function : {ty_align_capacity, ty_align_min_capacity}) {
    EXPECT_EQ(function(INT_MAX, 4096, 1), INT_MAX);
    EXPECT_EQ(function(1, 1, INT_MAX), INT_MAX);
    EXPECT_EQ(function(2, 2, INT_MAX), -1);
    EXPECT_EQ(function(INT_MAX, 1, 2), -1);  // one more than INT_MAX
  }
  EXPECT_EQ(ty_align_min_capacity(INT_MAX - 1, 1, 2), INT_MAX - 1);
  EXPECT_EQ(ty_align_capacity(INT_MAX - 1, 1, 2), -1);  // the formula rounds up past it
}

}  // namespace
}  // namespace tokenyard::test
