// Captured once, replayed with other routing: what inference engines do with every decoding step.
#include <utility>
#include <vector>

#include "gpu.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

constexpr int kReplays = 1000;

class Graphs : public OnGpu {};

INSTANTIATE_TEST_SUITE_P(Align, Graphs,
                         testing::Combine(testing::ValuesIn(kGpus),
                                          testing::Values(TY_ALIGN_AUTO, TY_ALIGN_EVERYWHERE, TY_ALIGN_GRID,
                                                          TY_ALIGN_SPLIT)),
                         gpu_and_path);

TEST_P(Graphs, ReplayWithOtherRouting) {
  std::vector<std::pair<harness::AlignProblem, harness::AlignOutputs>> routings;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const auto distribution = static_cast<harness::Distribution>(seed % 4);
    harness::AlignProblem problem = harness::draw({.tokens = 1024,
                                                   .top_k = 8,
                                                   .experts = 256,
                                                   .distribution = distribution,
                                                   .invalid_ids = seed % 3 == 0,
                                                   .seed = seed});
    harness::AlignOutputs want = harness::expected(problem);
    routings.emplace_back(std::move(problem), std::move(want));
  }
  const Streams streams(*runtime, 1);
  harness::AlignRun run = create(device, routings.front().first, options);
  Graph graph = nullptr;
  require(runtime->capture(streams[0], [&] { return run.launch(streams[0]); }, &graph));
  for (int replay = 0; replay < kReplays; ++replay) {
    const auto& [problem, want] = routings[static_cast<size_t>(replay) % routings.size()];
    require(run.set_ids(problem.ids));
    require(run.poison());
    require(runtime->replay(graph, streams[0]));
    streams.synchronize();
    ASSERT_EQ(harness::difference(collected(run), want), "") << "replay " << replay;
  }
  require(runtime->destroy_graph(graph));
}

// Replays and eager calls take turns on one workspace.
TEST_P(Graphs, ReplaysBetweenEagerCalls) {
  const harness::AlignProblem problem = harness::draw({.tokens = 1000, .top_k = 8, .experts = 256});
  const harness::AlignOutputs want = harness::expected(problem);
  const Streams streams(*runtime, 1);
  harness::AlignRun run = create(device, problem, options);
  Graph graph = nullptr;
  const auto twenty_launches = [&]() -> Status {
    for (int i = 0; i < 20; ++i) TY_RETURN_IF_ERROR(run.launch(streams[0]));
    return {};
  };
  require(runtime->capture(streams[0], twenty_launches, &graph));
  for (int round = 0; round < 50; ++round) {
    require(run.poison());
    require(runtime->replay(graph, streams[0]));
    if (round % 2 == 0) require(run.launch(streams[0]));
    streams.synchronize();
    ASSERT_EQ(harness::difference(collected(run), want), "") << "round " << round;
  }
  require(runtime->destroy_graph(graph));
}

class Captures : public OnGpu {};

INSTANTIATE_TEST_SUITE_P(Workspace, Captures,
                         testing::Combine(testing::ValuesIn(kGpus), testing::Values(TY_ALIGN_AUTO)),
                         gpu_and_path);

// A replay would wipe the state that other launches rely on.
TEST_P(Captures, NoWorkspaceIsPreparedInACapture) {
  const Streams streams(*runtime, 1);
  void* memory = nullptr;
  require(runtime->allocate(256, &memory));
  ty_workspace* workspace = nullptr;
  ty_status status = TY_OK;
  Graph graph = nullptr;
  const auto prepare = [&]() -> Status {
    status = ty_workspace_create(device_id(device), memory, 256, streams[0], &workspace);
    return {};
  };
  require(runtime->capture(streams[0], prepare, &graph));
  EXPECT_EQ(status, TY_INVALID_ARGUMENT);
  EXPECT_EQ(workspace, nullptr);
  require(runtime->destroy_graph(graph));
  require(runtime->free(memory));
}

}  // namespace
}  // namespace tokenyard::test
