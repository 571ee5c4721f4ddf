// A workspace for the largest batch serves every smaller one; memory for one call serves it, whatever was in
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device.hpp"
#include "gate_expect.hpp"
#include "harness/guarded_buffer.hpp"
#include "harness/problem.hpp"
#include "harness/route_run.hpp"
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

class Once : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Align, Once, testing::Values("cpu", "simt32", "simt64", "cuda", "hip"));

TEST_P(Once, SortsInMemoryThatHeldAnything) {
  TY_SKIP_IF_MISSING(GetParam());
  const ty_device device = device_id(GetParam());
  Runtime& runtime = *find_backend(device.backend)->runtime;
  for (ty_align_path path : paths_of(GetParam())) {
    const harness::AlignProblem problem =
        harness::draw({.tokens = 120, .top_k = 4, .experts = 60, .block = 16});
    harness::AlignRun run = create(GetParam(), problem, {.path = path});
    size_t bytes = 0;
    ASSERT_EQ(ty_align_once_size(device, &run.args(), &bytes), TY_OK) << ty_last_error();
    harness::GuardedBuffer memory;
    require(harness::GuardedBuffer::create(runtime, "memory", bytes, 0, memory));
    for (int call = 0; call < 2; ++call) {
      require(memory.poison());
      require(run.poison());
      ASSERT_EQ(ty_align_once(device, &run.args(), bytes == 0 ? nullptr : memory.data(), bytes, nullptr),
                TY_OK)
          << ty_last_error();
      require(runtime.synchronize(nullptr));
      EXPECT_EQ(harness::difference(collected(run), harness::expected(problem)), "") << path_name(path);
      std::vector<unsigned char> after(bytes);
      require(memory.read(after.data()));  // for its guards
    }
  }
}

// A memset costs more than what reading everything everywhere does.
TEST_P(Once, NeedsNoMemoryAsFarAsEverywhereGoes) {
  TY_SKIP_IF_MISSING(GetParam());
  if (GetParam() == "cpu") GTEST_SKIP() << "the CPU needs none at all";
  const ty_device device = device_id(GetParam());
  for (const auto& [tokens, none] : {std::pair{512, true}, std::pair{200'000, false}}) {
    ty_align_args args = TY_ALIGN_ARGS_INIT;
    args.num_tokens = tokens;
    args.top_k = 8;
    args.num_experts = 60;
    args.block_size = 16;
    args.capacity = ty_align_capacity(args.num_tokens * args.top_k, args.num_experts, args.block_size);
    size_t bytes = 0;
    ASSERT_EQ(ty_align_once_size(device, &args, &bytes), TY_OK) << ty_last_error();
    EXPECT_EQ(bytes == 0, none) << tokens << " tokens: " << bytes;
  }
}

class RouteOnce : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Route, RouteOnce, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

// The memory is cleared in front of gate: what is linked to gate's launch stands behind it.
TEST_P(RouteOnce, RoutesInMemoryThatHeldAnything) {
  TY_SKIP_IF_MISSING(GetParam());
  const ty_device device = device_id(GetParam());
  Runtime& runtime = *find_backend(device.backend)->runtime;
  const harness::RouteProblem problem = harness::draw({.gate = deepseek_v3(20), .block = 16});
  const harness::GateOutputs chosen = gate_outputs(GetParam(), problem.gate);
  std::optional<harness::RouteRun> run;
  require(harness::RouteRun::create(device, problem, {}, run));
  ty_route_args args = run->args();
  ty_align_args align = *args.align;
  args.align = &align;
  for (ty_align_path path : paths_of(GetParam())) {
    align.path = path;
    size_t bytes = 0;
    ASSERT_EQ(ty_route_once_size(device, &args, &bytes), TY_OK) << ty_last_error();
    harness::GuardedBuffer memory;
    require(harness::GuardedBuffer::create(runtime, "memory", bytes, 0, memory));
    for (int call = 0; call < 2; ++call) {
      require(memory.poison());
      require(run->poison());
      ASSERT_EQ(ty_route_once(device, &args, bytes == 0 ? nullptr : memory.data(), bytes, nullptr), TY_OK)
          << ty_last_error();
      require(runtime.synchronize(nullptr));
      harness::RouteOutputs got;
      require(run->collect(got));
      EXPECT_EQ(harness::difference(problem, got, chosen), "") << path_name(path);
      std::vector<unsigned char> after(bytes);
      require(memory.read(after.data()));  // for its guards
    }
  }
}

TEST_P(RouteOnce, TheMemoryIsAligns) {
  TY_SKIP_IF_MISSING(GetParam());
  for (const int64_t tokens : {1, 64, 700, 9000}) {
    const harness::RouteShape shape{.gate = deepseek_v3(tokens), .block = 16};
    const harness::RouteCall call(shape, TY_ROUTE_AUTO);
    const ty_align_args align = harness::align_args(shape.align());
    size_t bytes = 1, wanted = 2;
    ASSERT_EQ(ty_route_once_size(device_id(GetParam()), &call.args(), &bytes), TY_OK) << ty_last_error();
    ASSERT_EQ(ty_align_once_size(device_id(GetParam()), &align, &wanted), TY_OK) << ty_last_error();
    EXPECT_EQ(bytes, wanted) << tokens;
  }
}

}  // namespace
}  // namespace tokenyard::test
