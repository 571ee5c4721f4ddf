// Launches that overlap on the card, each with its own workspace. The grid path waits for other blocks, so it
// is the one that could hang: the time limit of these tests is part of the check.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "gpu.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

class Overlap : public OnGpu {
 protected:
  // One run a stream, each of another routing; every other one linked.
  void start(size_t streams, harness::AlignShape shape) {
    for (size_t i = 0; i < streams; ++i) {
      shape.seed = i;
      const harness::AlignProblem problem = harness::draw(shape);
      harness::AlignOptions each = options;
      each.linked = i % 2 == 1;
      runs.push_back(create(device, problem, each));
      wanted.push_back(harness::expected(problem));
    }
  }

  void launch_rounds(const Streams& streams, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < runs.size(); ++i) require(runs[i].launch(streams[i]));
    }
  }

  void expect_right_and_poison() {
    for (size_t i = 0; i < runs.size(); ++i) {
      ASSERT_EQ(harness::difference(collected(runs[i]), wanted[i]), "") << "stream " << i;
      require(runs[i].poison());
    }
  }

  std::vector<harness::AlignRun> runs;
  std::vector<harness::AlignOutputs> wanted;
};

class TwoStreams : public Overlap {};

INSTANTIATE_TEST_SUITE_P(Align, TwoStreams,
                         testing::Combine(testing::ValuesIn(kGpus),
                                          testing::Values(TY_ALIGN_AUTO, TY_ALIGN_EVERYWHERE, TY_ALIGN_GRID,
                                                          TY_ALIGN_SPLIT)),
                         gpu_and_path);

TEST_P(TwoStreams, DoNotDisturbEachOther) {
  const int64_t tokens = std::get<1>(GetParam()) == TY_ALIGN_EVERYWHERE ? 512 : 4096;
  start(2, {.tokens = tokens, .top_k = 8, .experts = 256});
  const Streams streams(*runtime, 2);
  for (int check = 0; check < 20; ++check) {
    launch_rounds(streams, 50);
    streams.synchronize();
    expect_right_and_poison();
  }
}

class SixteenStreams : public Overlap {
 protected:
  // Rounds of 200 launches on each stream that ended meanwhile, or in the end. The last stream replays a
  // graph.
  int rounds_beside_holder(int64_t tokens) {
    constexpr size_t kStreams = 16;
    start(kStreams, {.tokens = tokens, .top_k = 8, .experts = 256});
    const Streams streams(*runtime, kStreams + 1);
    Graph graph = nullptr;
    require(runtime->capture(
        streams[kStreams - 1], [&] { return runs.back().launch(streams[kStreams - 1]); }, &graph));

    const DeviceProperties* properties = nullptr;
    const Backend* backend = nullptr;
    require(find_device({find_backend(device)->id, 0}, &backend, &properties));
    constexpr double kSeconds = 5;
    require(runtime->launch_holder(properties->multiprocessors / 2, kSeconds, streams[kStreams]));

    int rounds = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSeconds);
    while (std::chrono::steady_clock::now() < end && !HasFatalFailure()) {
      for (int round = 0; round < 200; ++round) {
        for (size_t i = 0; i + 1 < kStreams; ++i) require(runs[i].launch(streams[i]));
        require(runtime->replay(graph, streams[kStreams - 1]));
      }
      for (size_t i = 0; i < kStreams; ++i) require(runtime->synchronize(streams[i]));
      expect_right_and_poison();
      ++rounds;
    }
    streams.synchronize();
    require(runtime->destroy_graph(graph));
    std::printf("%d rounds beside a kernel on %d multiprocessors\n", rounds, properties->multiprocessors / 2);
    return rounds;
  }
};

INSTANTIATE_TEST_SUITE_P(Align, SixteenStreams,
                         testing::Combine(testing::ValuesIn(kGpus), testing::Values(TY_ALIGN_AUTO)),
                         gpu_and_path);

// Another kernel has half of the multiprocessors for itself meanwhile. Small batches, no cooperative
// launches, run beside it.
TEST_P(SixteenStreams, GoOnBesideAKernelOnHalfOfTheCard) { EXPECT_GT(rounds_beside_holder(256), 10); }

// For blocks in clusters there may be no room: they wait until it has ended, and then are right.
TEST_P(SixteenStreams, NeitherHangNorErrWhereThereIsNoRoom) { EXPECT_GT(rounds_beside_holder(16384), 0); }

}  // namespace
}  // namespace tokenyard::test
