// The C++ layer over the C ABI, linked as a user links it.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "tokenyard/tokenyard.hpp"

namespace {

using tokenyard::AlignArgs;
using tokenyard::AlignedOrder;
using tokenyard::Device;
using tokenyard::Error;
using tokenyard::Workspace;
using Ints = std::vector<int32_t>;

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {TY_OK, ""};
}

TEST(CppApi, SortsHostMemory) {
  const Ints ids{2, 0, 2, -1, 1, 2};
  const AlignedOrder order = tokenyard::align(ids, 2, 3, 2);
  EXPECT_EQ(order.sorted_pair_ids, (Ints{1, 6, 4, 6, 0, 2, 5, 6}));
  EXPECT_EQ(order.block_expert, (Ints{0, 1, 2, 2}));
  EXPECT_EQ(order.block_rows, (Ints{1, 1, 2, 1}));
  EXPECT_EQ(order.counts, (Ints{1, 1, 3}));
  EXPECT_EQ(order.offsets, (Ints{0, 2, 4, 8}));
  EXPECT_EQ(order.inverse, (Ints{4, 0, 5, -1, 2, 6}));
  EXPECT_EQ(order.num_dropped, 1);
}

TEST(CppApi, TakesIdsOfEitherWidthAndAMap) {
  const std::vector<int64_t> ids{2, 0, 2, 1};
  const Ints map{-1, 0, 1};
  const AlignedOrder order = tokenyard::align(ids, 2, 3, 1, {map, 2});
  EXPECT_EQ(order.sorted_pair_ids, (Ints{3, 0, 2}));
  EXPECT_EQ(order.counts, (Ints{1, 2}));
  EXPECT_EQ(order.num_dropped, 1);
}

TEST(CppApi, SortsNothing) {
  const AlignedOrder order = tokenyard::align(Ints{}, 2, 3, 4);
  EXPECT_TRUE(order.sorted_pair_ids.empty());
  EXPECT_EQ(order.offsets, (Ints{0, 0, 0, 0}));
}

TEST(CppApi, ArgumentsDeriveTypeAndCapacity) {
  const int64_t* const none = nullptr;
  AlignArgs args(none, 10, 4, 64, 16);
  EXPECT_EQ(args.struct_size, sizeof(ty_align_args));
  EXPECT_EQ(args.ids_dtype, TY_INT64);
  EXPECT_EQ(args.capacity, ty_align_capacity(40, 64, 16));
  EXPECT_EQ(args.num_blocks() * 16, args.capacity);
  const Ints map(64, -1);
  args.set_expert_map(map.data(), 3);
  EXPECT_EQ(args.capacity, ty_align_capacity(40, 3, 16));
  EXPECT_EQ(args.experts(), 3);
}

TEST(CppApi, RefusesWithStatusAndSentence) {
  const Ints ids{0, 1, 2};
  Error error = error_of([&] { tokenyard::align(ids, 2, 3, 2); });
  EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);
  EXPECT_STREQ(error.what(),
               "align: topk_ids has 3 ids, expected a multiple of top_k, which is 2: pass the whole "
               "[num_tokens, top_k]");

  error = error_of([&] { tokenyard::align(ids, 1, 3, 2, {Ints{0}, 1}); });
  EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);

  error = error_of([&] { AlignArgs(ids.data(), std::numeric_limits<int64_t>::max(), 8, 3, 2); });
  EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);

  // What only the library checks comes with its own words.
  AlignArgs args(ids.data(), 3, 1, 3, 2);
  error = error_of([&] { tokenyard::align(TY_CPU, args, Workspace(), nullptr); });
  EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);
  EXPECT_STREQ(error.what(), ty_last_error());
}

TEST(CppApi, SortsInMemoryOfTheCallsOwn) {
  const Ints ids{1, 0};
  Ints sorted_pair_ids(2), block_expert(2), num_padded(1);
  AlignArgs args(ids.data(), 2, 1, 2, 1);
  args.sorted_pair_ids = sorted_pair_ids.data();
  args.block_expert = block_expert.data();
  args.num_padded = num_padded.data();
  EXPECT_EQ(tokenyard::align_once_size(TY_CPU, args), 0U);
  tokenyard::align_once(TY_CPU, args, nullptr, 0, nullptr);
  EXPECT_EQ(sorted_pair_ids, (Ints{1, 0}));
}

TEST(CppApi, WorkspaceOwnsItsHandleAlone) {
  alignas(256) unsigned char memory[512];
  Workspace workspace(TY_CPU, memory, sizeof memory, nullptr);
  ty_workspace* const handle = workspace.get();
  EXPECT_NE(handle, nullptr);
  Workspace moved = std::move(workspace);
  EXPECT_EQ(moved.get(), handle);
  EXPECT_EQ(workspace.get(), nullptr);  // NOLINT(bugprone-use-after-move): what a move leaves
  EXPECT_EQ(Workspace(TY_CPU, nullptr, 0, nullptr).get(), nullptr);

  const Error error = error_of([&] { Workspace(TY_CPU, memory + 1, 256, nullptr); });
  EXPECT_EQ(error.status(), TY_INVALID_ARGUMENT);
}

TEST(CppApi, DescribesDevicesAndPaths) {
  EXPECT_EQ(Device::count(TY_CPU), 1);
  EXPECT_FALSE(Device(TY_CPU).description().empty());
  EXPECT_GT(Device::count(static_cast<ty_backend>(Device::best().backend)), 0);
  const Ints ids(8);
  EXPECT_FALSE(tokenyard::align_explain(TY_CPU, AlignArgs(ids.data(), 8, 1, 4, 2)).empty());
  EXPECT_EQ(error_of([] { (void)Device(TY_CPU, 7).description(); }).status(), TY_INVALID_ARGUMENT);
}

}  // namespace
