// Linked calls on a card: each may begin while the one before it still runs.
#include <memory>
#include <vector>

#include "chain.hpp"
#include "gpu.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

constexpr int kChainsInGraph = 8;

class LinkedCalls : public OnGpu {
 protected:
  std::unique_ptr<Chain> chain(const harness::AlignProblem& first) const {
    return std::make_unique<Chain>(
        device, first,
        harness::AlignOptions{.path = options.path, .optional_outputs = false, .linked = true});
  }
  // From a single pair to more than a cluster's.
  static std::vector<harness::AlignShape> shapes() {
    std::vector<harness::AlignShape> all;
    for (const int64_t tokens : {1, 16, 200, 1500}) {
      all.push_back({.tokens = tokens, .top_k = 8, .experts = 256, .block = 16});
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Align, LinkedCalls,
                         testing::Combine(testing::ValuesIn(kGpus),
                                          testing::Values(TY_ALIGN_AUTO, TY_ALIGN_GRID, TY_ALIGN_SPLIT)),
                         gpu_and_path);

// Each chain of a graph overwrites what the one before it wrote, and may not do so before it was read.
TEST_P(LinkedCalls, InGraphsOneAfterTheOther) {
  const Streams streams(*runtime, 1);
  for (harness::AlignShape shape : shapes()) {
    const auto calls = chain(harness::draw(shape));
    Graph graph = nullptr;
    const auto chains = [&]() -> Status {
      for (int i = 0; i < kChainsInGraph; ++i) TY_RETURN_IF_ERROR(calls->launch(streams[0]));
      return {};
    };
    require(chains());
    require(runtime->capture(streams[0], chains, &graph));
    for (shape.seed = 1; shape.seed <= 50; ++shape.seed) {
      calls->set_ids(harness::draw(shape));
      calls->poison();
      require(runtime->replay(graph, streams[0]));
      streams.synchronize();
      ASSERT_EQ(calls->difference(), "") << shape.command();
    }
    require(runtime->destroy_graph(graph));
  }
}

// A copy is no kernel: nothing begins before it has ended, nor does it begin early.
TEST_P(LinkedCalls, BehindCopiesOfTheirIds) {
  const Streams streams(*runtime, 1);
  for (harness::AlignShape shape : shapes()) {
    const harness::AlignProblem first = harness::draw(shape);
    const auto calls = chain(first);
    shape.seed = 1;
    const harness::AlignProblem second = harness::draw(shape);
    const auto source = chain(second);
    const size_t bytes = static_cast<size_t>(second.num_pairs()) * sizeof(int32_t);
    const auto copy_and_sort = [&]() -> Status {
      for (int i = 0; i < kChainsInGraph; ++i) {
        void* const ids = const_cast<void*>(calls->first_args().topk_ids);
        TY_RETURN_IF_ERROR(runtime->fill(ids, 0xff, bytes, streams[0]));
        TY_RETURN_IF_ERROR(calls->launch(streams[0]));
        TY_RETURN_IF_ERROR(runtime->copy_on_device(ids, source->first_args().topk_ids, bytes, streams[0]));
        TY_RETURN_IF_ERROR(calls->launch(streams[0]));
      }
      return {};
    };
    Graph graph = nullptr;
    require(copy_and_sort());
    require(runtime->capture(streams[0], copy_and_sort, &graph));
    for (int replay = 0; replay < 20; ++replay) {
      calls->set_ids(second);
      calls->poison();
      require(runtime->replay(graph, streams[0]));
      streams.synchronize();
      ASSERT_EQ(calls->difference(), "") << shape.command();
    }
    require(runtime->destroy_graph(graph));
  }
}

// Eager and replayed, on streams that overlap. Blocks of one stream that wait must not keep the other's out.
TEST_P(LinkedCalls, OnStreamsThatOverlap) {
  constexpr size_t kStreams = 4;
  const Streams streams(*runtime, kStreams);
  std::vector<std::unique_ptr<Chain>> calls;
  std::vector<Graph> graphs(kStreams);
  for (size_t i = 0; i < kStreams; ++i) {
    harness::AlignShape shape = shapes()[i];
    shape.seed = i;
    calls.push_back(chain(harness::draw(shape)));
    require(calls[i]->launch(streams[i]));
    require(runtime->capture(streams[i], [&] { return calls[i]->launch(streams[i]); }, &graphs[i]));
  }
  for (int round = 0; round < 20; ++round) {
    streams.synchronize();
    for (const auto& chain : calls) chain->poison();
    for (int again = 0; again < 50; ++again) {
      for (size_t i = 0; i < kStreams; ++i) {
        require(calls[i]->launch(streams[i]));
        require(runtime->replay(graphs[i], streams[i]));
      }
    }
    streams.synchronize();
    for (size_t i = 0; i < kStreams; ++i) ASSERT_EQ(calls[i]->difference(), "") << "stream " << i;
  }
  for (Graph graph : graphs) require(runtime->destroy_graph(graph));
}

}  // namespace
}  // namespace tokenyard::test
