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

class SixteenStreams : public Overlap {};

INSTANTIATE_TEST_SUITE_P(Align, SixteenStreams,
                         testing::Combine(testing::ValuesIn(kGpus), testing::Values(TY_ALIGN_GRID)),
                         gpu_and_path);

// Another kernel has half of the multiprocessors for itself meanwhile; the last stream replays a graph.
TEST_P(SixteenStreams, NeitherHangNorErrForTenSeconds) {
  constexpr size_t kStreams = 16;
  start(kStreams, {.tokens = 16384, .top_k = 8, .experts = 256});
  const Streams streams(*runtime, kStreams + 1);
  Graph graph = nullptr;
  require(runtime->capture(
      streams[kStreams - 1], [&] { return runs.back().launch(streams[kStreams - 1]); }, &graph));

  const DeviceProperties* properties = nullptr;
  const Backend* backend = nullptr;
  require(find_device({find_backend(device)->id, 0}, &backend, &properties));
  constexpr double kSeconds = 10;
  require(runtime->launch_holder(properties->multiprocessors / 2, kSeconds, streams[kStreams]));

  int rounds = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSeconds);
  while (std::chrono::steady_clock::now() < end) {
    for (int round = 0; round < 200; ++round) {
      for (size_t i = 0; i + 1 < kStreams; ++i) require(runs[i].launch(streams[i]));
      require(runtime->replay(graph, streams[kStreams - 1]));
    }
    // Should there be no room beside the holder after all, this waits until it has ended.
    for (size_t i = 0; i < kStreams; ++i) require(runtime->synchronize(streams[i]));
    expect_right_and_poison();
    ++rounds;
  }
  streams.synchronize();
  require(runtime->destroy_graph(graph));
  RecordProperty("launches_beside_the_holder", rounds * 200 * static_cast<int>(kStreams));
  std::printf("%d launches in ten seconds beside a kernel on %d multiprocessors\n",
              rounds * 200 * static_cast<int>(kStreams), properties->multiprocessors / 2);
}

}  // namespace
}  // namespace tokenyard::test
