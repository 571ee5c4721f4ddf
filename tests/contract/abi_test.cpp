// What a compiled user of the library relies on.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tokenyard/tokenyard.h"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

// Fields are only ever added at the end: these places never change.
static_assert(offsetof(ty_align_args, struct_size) == 0);
static_assert(offsetof(ty_align_args, ids_dtype) == 4);
static_assert(offsetof(ty_align_args, topk_ids) == 8);
static_assert(offsetof(ty_align_args, num_tokens) == 16);
static_assert(offsetof(ty_align_args, row_stride) == 24);
static_assert(offsetof(ty_align_args, top_k) == 32);
static_assert(offsetof(ty_align_args, num_experts) == 36);
static_assert(offsetof(ty_align_args, block_size) == 40);
static_assert(offsetof(ty_align_args, num_local_experts) == 44);
static_assert(offsetof(ty_align_args, expert_map) == 48);
static_assert(offsetof(ty_align_args, capacity) == 56);
static_assert(offsetof(ty_align_args, sorted_pair_ids) == 64);
static_assert(offsetof(ty_align_args, num_dropped) == 120);
static_assert(offsetof(ty_align_args, path) == 128);
static_assert(offsetof(ty_align_args, linked) == 132);
static_assert(offsetof(ty_align_args, first_id) == 136);
static_assert(sizeof(ty_align_args) == 144, "no padding at the end: a new field changes the size");

TEST(Abi, InitialiserSetsTheSizeAndZeroes) {
  const ty_align_args args = TY_ALIGN_ARGS_INIT;
  EXPECT_EQ(args.struct_size, sizeof args);
  EXPECT_EQ(args.num_tokens, 0);
  EXPECT_EQ(args.expert_map, nullptr);
  EXPECT_EQ(args.path, TY_ALIGN_AUTO);
}

TEST(Abi, VersionIsTheHeaders) {
  EXPECT_EQ(ty_version(), std::to_string(TY_VERSION_MAJOR) + "." + std::to_string(TY_VERSION_MINOR) + "." +
                              std::to_string(TY_VERSION_PATCH));
}

TEST(Abi, TheCpuIsThereAndTheBestDeviceIsUsable) {
  EXPECT_EQ(ty_device_count(TY_CPU), 1);
  const ty_device best = ty_best_device();
  EXPECT_STREQ(ty_last_error(), "");
  EXPECT_GT(ty_device_count(best.backend), best.ordinal);
}

TEST(Abi, TextsAreCutToTheBuffer) {
  char whole[500];
  ASSERT_EQ(ty_device_describe(kCpu, whole, sizeof whole), TY_OK);
  EXPECT_NE(std::string(whole).find("core"), std::string::npos) << whole;
  char cut[] = "untouched";
  ASSERT_EQ(ty_device_describe(kCpu, cut, 4), TY_OK);
  EXPECT_EQ(std::string(cut), std::string(whole).substr(0, 3));
  EXPECT_STREQ(cut + 4, "uched");
}

TEST(Abi, ExplainNeedsNoPointers) {
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.num_tokens = 16384;
  args.top_k = 8;
  args.num_experts = 256;
  args.block_size = 128;
  args.capacity = ty_align_capacity(16384 * 8, 256, 128);
  char why[200];
  ASSERT_EQ(ty_align_explain(kCpu, &args, why, sizeof why), TY_OK) << ty_last_error();
  EXPECT_NE(std::string(why).find("131072 pairs"), std::string::npos) << why;
}

TEST(Abi, NoTokensNeedNoPointersButNumPadded) {
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  int32_t num_padded = -7;
  args.top_k = args.num_experts = args.block_size = 1;
  args.num_padded = &num_padded;
  ASSERT_EQ(ty_align(kCpu, &args, nullptr, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(num_padded, 0);
}

}  // namespace
}  // namespace tokenyard::test
