// A workspace for the largest batch serves every smaller one.
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

}  // namespace
}  // namespace tokenyard::test
