// A million calls on one workspace, replayed back to back, every output of every call compared: what goes
// wrong once in a hundred thousand times, when a block comes late or an epoch is old, shows here or nowhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../port/device_array.hpp"
#include "compare.hpp"
#include "gpu.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

using tests::DeviceArray;

struct Path {
  const char* name;
  int64_t tokens;
  int32_t experts;
  ty_align_path path = TY_ALIGN_AUTO;
  int calls = 1'000'000;
};

constexpr Path kPaths[] = {
    {"registers", 4, 256},
    {"everywhere", 64, 256},
    {"tiles", 1024, 256},
    {"tiles_in_clusters", 4096, 256},
    {"wide", 1024, 4096, TY_ALIGN_GRID, 300'000},
    {"many_tiles", 70'000, 256, TY_ALIGN_GRID, 50'000},
    {"split", 1024, 256, TY_ALIGN_SPLIT, 300'000},
};

constexpr int kRoutings = 16;
constexpr int kCalls = 2 * kRoutings;  // in a graph: each routing plain, then each linked

// The arrays of all calls in one, a part each, which begins on a cache line.
class Parts {
 public:
  explicit Parts(const ty_align_args& args) : args_(args) {}

  int64_t size() const { return kCalls * whole(); }
  void place(ty_align_args& args, int32_t* all, int call) const {
    args.sorted_pair_ids = all + call * whole();
    args.block_expert = args.sorted_pair_ids + rounded(args_.capacity);
    args.num_padded = args.block_expert + rounded(num_blocks());
  }
  void write(std::vector<int32_t>& all, int call, const harness::AlignOutputs& outputs) const {
    ty_align_args at = args_;
    place(at, all.data(), call);
    std::copy(outputs.sorted_pair_ids.begin(), outputs.sorted_pair_ids.end(), at.sorted_pair_ids);
    std::copy(outputs.block_expert.begin(), outputs.block_expert.end(), at.block_expert);
    *at.num_padded = outputs.num_padded;
  }

 private:
  static int64_t rounded(int64_t elements) { return (elements + 31) / 32 * 32; }
  int64_t num_blocks() const { return (args_.capacity + args_.block_size - 1) / args_.block_size; }
  int64_t whole() const { return rounded(args_.capacity) + rounded(num_blocks()) + rounded(1); }

  ty_align_args args_;
};

class Replays : public testing::TestWithParam<Path> {};

INSTANTIATE_TEST_SUITE_P(Align, Replays, testing::ValuesIn(kPaths),
                         [](const auto& info) { return std::string("cuda_") + info.param.name; });

TEST_P(Replays, AMillionCallsEachCompared) {
  TY_SKIP_IF_MISSING("cuda");
  Runtime& runtime = *find_backend("cuda")->runtime;
  require(runtime.set_device(0));
  harness::AlignShape shape{.tokens = GetParam().tokens, .top_k = 8, .experts = GetParam().experts};
  ty_align_args args = harness::align_args(shape, GetParam().path);
  const Parts parts(args);

  std::vector<int32_t> all_ids;
  std::vector<int32_t> all_outputs(static_cast<size_t>(parts.size()), CompareAndPoison::kPoison);
  const DeviceArray<int32_t> got(runtime, all_outputs);
  for (int routing = 0; routing < kRoutings; ++routing) {
    shape.distribution = static_cast<harness::Distribution>(routing % 4);
    shape.invalid_ids = routing % 3 == 0;
    shape.seed = static_cast<uint64_t>(routing);
    const harness::AlignProblem problem = harness::draw(shape);
    all_ids.insert(all_ids.end(), problem.ids.begin(), problem.ids.end());
    const harness::AlignOutputs want = harness::expected(problem);
    for (int call = routing; call < kCalls; call += kRoutings) parts.write(all_outputs, call, want);
  }
  const DeviceArray<int32_t> ids(runtime, all_ids), want(runtime, all_outputs), differ(runtime, 1);

  size_t bytes = 0;
  ASSERT_EQ(ty_align_workspace_size(device_id("cuda"), &args, &bytes), TY_OK) << ty_last_error();
  const DeviceArray<char> memory(runtime, std::max<size_t>(bytes, 1));
  const Streams streams(runtime, 1);
  ty_workspace* workspace = nullptr;
  if (bytes > 0) {
    ASSERT_EQ(ty_workspace_create(device_id("cuda"), memory.data(), bytes, streams[0], &workspace), TY_OK)
        << ty_last_error();
  }

  const auto calls = [&]() -> Status {
    for (int call = 0; call < kCalls; ++call) {
      args.topk_ids = ids.data() + call % kRoutings * shape.tokens * shape.top_k;
      args.linked = call < kRoutings ? 0 : 1;
      parts.place(args, got.data(), call);
      const ty_status code = ty_align(device_id("cuda"), &args, workspace, streams[0]);
      if (code != TY_OK) return {code, ty_last_error()};
    }
    return compare_on_cuda({got.data(), want.data(), parts.size(), differ.data()}, streams[0]);
  };
  require(calls());
  Graph graph = nullptr;
  require(runtime.capture(streams[0], calls, &graph));
  constexpr int kReplaysAtOnce = 500;
  for (int made = 0; made < GetParam().calls; made += kReplaysAtOnce * kCalls) {
    for (int replay = 0; replay < kReplaysAtOnce; ++replay) require(runtime.replay(graph, streams[0]));
    streams.synchronize();
    ASSERT_EQ(differ.values()[0], 0) << "elements differ, within " << made + kReplaysAtOnce * kCalls
                                     << " calls";
  }
  require(runtime.destroy_graph(graph));
  ty_workspace_destroy(workspace);
}

}  // namespace
}  // namespace tokenyard::test
