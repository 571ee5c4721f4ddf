// Promises beyond one right result: the same bits again, whatever ran before, beside it or around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {
namespace {

using harness::AlignOutputs;
using harness::AlignProblem;
using harness::AlignRun;

class Promises : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }
  const std::string device = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Align, Promises, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

// The executor runs each launch in another order of lanes, warps and blocks.
TEST_P(Promises, TheSameBitsOnEveryRun) {
  const AlignProblem problem = harness::draw(
      {.tokens = 700, .top_k = 4, .experts = 60, .block = 16, .distribution = harness::Distribution::kZipf});
  for (const ty_align_path path : paths_of(device)) {
    AlignRun run = create(device, problem, {.path = path});
    const AlignOutputs first = launched(device, run);
    for (int again = 0; again < 10; ++again) {
      EXPECT_EQ(harness::difference(launched(device, run), first), "") << path_name(path);
    }
  }
}

// State that one launch leaves in a workspace must not reach the next.
TEST_P(Promises, OtherRoutingThroughTheSameBuffers) {
  const harness::AlignShape shape{.tokens = 300, .top_k = 6, .experts = 64, .block = 32, .duplicates = true};
  for (const ty_align_path path : paths_of(device)) {
    AlignRun run = create(device, harness::draw(shape), {.path = path});
    for (const auto distribution : {harness::Distribution::kOneExpert, harness::Distribution::kUniform,
                                    harness::Distribution::kHot, harness::Distribution::kZipf}) {
      for (const bool invalid_ids : {true, false}) {
        harness::AlignShape other = shape;
        other.distribution = distribution;
        other.invalid_ids = invalid_ids;
        other.seed = 1;
        const AlignProblem problem = harness::draw(other);
        require(run.set_ids(problem.ids));
        EXPECT_EQ(harness::difference(launched(device, run), harness::expected(problem)), "")
            << path_name(path) << ", " << other.command();
      }
    }
  }
}

// One workspace, sized by the largest shape, serves them all in any order.
TEST_P(Promises, OneWorkspaceForEveryShape) {
  std::vector<AlignProblem> problems;
  for (const int32_t experts : {256, 8, 600, 33}) {
    for (const int64_t tokens : {900, 3, 400}) {
      problems.push_back(harness::draw({.tokens = tokens, .top_k = 3, .experts = experts, .block = 16}));
    }
  }
  std::vector<std::pair<AlignRun, AlignOutputs>> runs;
  size_t bytes = 1;
  for (const AlignProblem& problem : problems) {
    for (const ty_align_path path : paths_of(device)) {
      runs.emplace_back(create(device, problem, {.path = path}), harness::expected(problem));
      size_t needed = 0;
      ASSERT_EQ(ty_align_workspace_size(device_id(device), &runs.back().first.args(), &needed), TY_OK);
      bytes = std::max(bytes, needed);
    }
  }
  Runtime& runtime = *find_backend(device)->runtime;
  void* memory = nullptr;
  require(runtime.allocate(bytes, &memory));
  ty_workspace* workspace = nullptr;
  ASSERT_EQ(ty_workspace_create(device_id(device), memory, bytes, nullptr, &workspace), TY_OK)
      << ty_last_error();
  for (int round = 0; round < 3; ++round) {
    for (auto& [run, want] : runs) {
      require(run.poison());
      ASSERT_EQ(ty_align(device_id(device), &run.args(), workspace, nullptr), TY_OK) << ty_last_error();
      require(runtime.synchronize(nullptr));
      AlignOutputs got;
      require(run.collect(got));
      EXPECT_EQ(harness::difference(got, want), "") << path_name(static_cast<ty_align_path>(run.args().path));
    }
  }
  ty_workspace_destroy(workspace);
  require(runtime.free(memory));
}

// The pairs of the first tokens come in the same order whatever tokens follow them in the batch.
TEST_P(Promises, TheBatchAroundATokenDoesNotMatter) {
  const AlignProblem alone = harness::draw({.tokens = 90, .top_k = 4, .experts = 40, .block = 8});
  const auto pairs_of_each_expert = [&](const AlignOutputs& outputs) {
    std::vector<std::vector<int32_t>> pairs(40);
    for (int32_t slot = 0; slot < outputs.num_padded; ++slot) {
      const int32_t pair = outputs.sorted_pair_ids[static_cast<size_t>(slot)];
      const int32_t expert = outputs.block_expert[static_cast<size_t>(slot / 8)];
      if (pair < alone.num_pairs()) pairs[static_cast<size_t>(expert)].push_back(pair);
    }
    return pairs;
  };
  AlignRun alone_run = create(device, alone);
  const auto want = pairs_of_each_expert(launched(device, alone_run));
  for (const int64_t tokens : {91, 200, 600, 1000}) {
    AlignProblem around = harness::draw({.tokens = tokens, .top_k = 4, .experts = 40, .block = 8, .seed = 7});
    std::copy(alone.ids.begin(), alone.ids.end(), around.ids.begin());
    AlignRun run = create(device, around);
    EXPECT_EQ(pairs_of_each_expert(launched(device, run)), want) << tokens << " tokens";
  }
}

// Padding tokens, as captured graphs have them, change neither order nor places.
TEST_P(Promises, PaddingTokensChangeNothing) {
  const AlignProblem bare = harness::draw({.tokens = 150, .top_k = 4, .experts = 40, .block = 8});
  AlignRun bare_run = create(device, bare);
  const AlignOutputs want = launched(device, bare_run);
  std::vector<int64_t> ids = bare.ids;
  ids.resize(512 * 4, -1);
  const AlignProblem padded =
      harness::from_ids({.tokens = 512, .top_k = 4, .experts = 40, .block = 8}, std::move(ids));
  AlignRun run = create(device, padded);
  const AlignOutputs got = launched(device, run);
  EXPECT_EQ(got.num_padded, want.num_padded);
  EXPECT_EQ(got.counts, want.counts);
  EXPECT_EQ(got.offsets, want.offsets);
  EXPECT_EQ(got.num_dropped, (512 - 150) * 4);
  EXPECT_TRUE(std::equal(want.inverse.begin(), want.inverse.end(), got.inverse.begin()));
}

TEST_P(Promises, TheWidthOfIdsAndTheirStrideDoNotMatter) {
  const harness::AlignShape shape{.tokens = 400, .top_k = 5, .experts = 100, .block = 16};
  const AlignProblem plain = harness::draw(shape);
  AlignRun plain_run = create(device, plain);
  const AlignOutputs want = launched(device, plain_run);
  for (const bool int64_ids : {false, true}) {
    for (const int64_t stride : {5, 6, 64}) {
      harness::AlignShape other = shape;
      other.int64_ids = int64_ids;
      other.row_stride = stride;
      AlignRun run = create(device, harness::from_ids(other, plain.ids));
      EXPECT_EQ(harness::difference(launched(device, run), want), "") << int64_ids << " " << stride;
    }
  }
}

// Calls of several host threads at once, each with its own buffers and workspace.
TEST_P(Promises, HostThreadsDoNotDisturbEachOther) {
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      const AlignProblem problem =
          harness::draw({.tokens = 500, .top_k = 4, .experts = 50, .block = 16, .seed = i});
      const AlignOutputs want = harness::expected(problem);
      for (const ty_align_path path : paths_of(device)) {
        AlignOutputs got;
        const Status status = harness::run_align(device_id(device), problem, {.path = path}, got);
        found[i] += status.ok() ? harness::difference(got, want) : status.message();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, std::vector<std::string>(found.size()));
}

TEST_P(Promises, PathsWithStateInsistOnAWorkspace) {
  const AlignProblem problem = harness::draw({.tokens = 64, .top_k = 2, .experts = 8, .block = 16});
  for (const ty_align_path path : paths_of(device)) {
    const AlignRun run = create(device, problem, {.path = path});
    size_t needed = 0;
    ASSERT_EQ(ty_align_workspace_size(device_id(device), &run.args(), &needed), TY_OK) << ty_last_error();
    if (path == TY_ALIGN_EVERYWHERE || device == "cpu") {
      EXPECT_EQ(needed, 0u);
      continue;
    }
    if (path == TY_ALIGN_AUTO) continue;
    EXPECT_GT(needed, 0u) << path_name(path);
    EXPECT_EQ(ty_align(device_id(device), &run.args(), nullptr, nullptr), TY_WORKSPACE_REQUIRED);
  }
}

}  // namespace
}  // namespace tokenyard::test
