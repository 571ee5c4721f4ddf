// A workspace for the largest batch serves every smaller one; what the exchange cannot count is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "device.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::test {
namespace {

class WorkspaceSize : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Align, WorkspaceSize, testing::Values("cpu", "simt32", "simt64", "cuda", "hip"));

size_t bytes_for(ty_device device, int64_t tokens, int32_t experts) {
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.num_tokens = tokens;
  args.top_k = 8;
  args.num_experts = experts;
  args.block_size = 16;
  args.capacity = ty_align_capacity(8 * tokens, experts, args.block_size);
  size_t bytes = 0;
  EXPECT_EQ(ty_align_workspace_size(device, &args, &bytes), TY_OK) << ty_last_error();
  return bytes;
}

TEST_P(WorkspaceSize, GrowsWithPairs) {
  TY_SKIP_IF_MISSING(GetParam());
  const ty_device device{find_backend(GetParam())->id, 0};
  for (int32_t experts : {1, 8, 256, 257, 4096}) {
    size_t largest = 0;
    for (int64_t tokens = 0; tokens < 200'000; tokens += 1 + tokens / 50) {
      const size_t bytes = bytes_for(device, tokens, experts);
      EXPECT_GE(bytes, largest) << tokens << " tokens, " << experts << " experts";
      largest = std::max(largest, bytes);
    }
  }
}

TEST_P(WorkspaceSize, GrowsWithExperts) {
  TY_SKIP_IF_MISSING(GetParam());
  const ty_device device{find_backend(GetParam())->id, 0};
  for (int64_t tokens : {1, 64, 75, 113, 600, 1000, 5000, 100'000}) {
    size_t largest = 0;
    for (int32_t experts : {1, 8, 255, 256, 257, 512, 513, 1000, 2048, 2049, 4096}) {
      const size_t bytes = bytes_for(device, tokens, experts);
      EXPECT_GE(bytes, largest) << tokens << " tokens, " << experts << " experts";
      largest = std::max(largest, bytes);
    }
  }
}

// More pairs than a word of the exchange can count must be refused before anything runs: the pointers here
// lead nowhere.
TEST(GridPath, RefusesRowsThatItCannotCount) {
  TY_SKIP_IF_MISSING("simt32");
  const ty_device device{kBackendSimt32, 0};
  alignas(256) static int32_t nowhere[64];
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.topk_ids = args.sorted_pair_ids = args.block_expert = args.num_padded = nowhere;
  args.num_tokens = int64_t{1} << 26;
  args.top_k = 2;
  args.num_experts = 8;
  args.block_size = 64;
  args.capacity = ty_align_capacity(args.num_tokens * args.top_k, args.num_experts, args.block_size);
  args.path = TY_ALIGN_GRID;
  size_t bytes = 0;
  ASSERT_EQ(ty_align_workspace_size(device, &args, &bytes), TY_OK) << ty_last_error();
  Runtime& runtime = *find_backend(kBackendSimt32)->runtime;
  void* memory = nullptr;
  require(runtime.allocate(bytes, &memory));
  ty_workspace* workspace = nullptr;
  ASSERT_EQ(ty_workspace_create(device, memory, bytes, nullptr, &workspace), TY_OK) << ty_last_error();
  EXPECT_EQ(ty_align(device, &args, workspace, nullptr), TY_UNSUPPORTED);
  EXPECT_NE(std::string(ty_last_error()).find("pairs a cluster"), std::string::npos) << ty_last_error();
  ty_workspace_destroy(workspace);
  require(runtime.free(memory));
}

}  // namespace
}  // namespace tokenyard::test
