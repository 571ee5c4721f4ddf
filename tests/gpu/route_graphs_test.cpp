// route captured once and replayed with other logits: in one launch, and in two of which the second may begin
// before the first has ended.
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gpu.hpp"
#include "harness/route_run.hpp"

namespace tokenyard::test {
namespace {

constexpr int kReplays = 300;
constexpr int kCallsInGraph = 4;

class RouteGraphs : public testing::TestWithParam<std::tuple<std::string, int64_t>> {
 protected:
  void SetUp() override {
    TY_SKIP_IF_MISSING(device);
    runtime = find_backend(device)->runtime;
    require(runtime->set_device(0));
  }

  const std::string device = std::get<0>(GetParam());
  Runtime* runtime = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Route, RouteGraphs,
                         testing::Combine(testing::ValuesIn(kGpus), testing::Values(1, 50, 500, 1000, 5000)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
                         });

// Calls of a graph stand one behind the other, so each also overwrites what the one before it has written.
TEST_P(RouteGraphs, ReplayWithOtherLogits) {
  harness::RouteShape shape{
      .gate = {
          .tokens = std::get<1>(GetParam()), .experts = 256, .top_k = 8, .weights = TY_GATE_RENORMALIZED}};
  std::vector<harness::RouteProblem> problems;
  std::vector<harness::GateOutputs> chosen(4);
  for (harness::GateOutputs& outputs : chosen) {
    shape.gate.seed = problems.size();
    problems.push_back(harness::draw(shape));
    require(harness::run_gate(device_id(device), problems.back().gate, {}, outputs));
  }
  const Streams streams(*runtime, 1);
  std::optional<harness::RouteRun> run;
  require(harness::RouteRun::create(device_id(device), problems[0], {.optional_outputs = false}, run));
  Graph graph = nullptr;
  const auto calls = [&]() -> Status {
    for (int i = 0; i < kCallsInGraph; ++i) TY_RETURN_IF_ERROR(run->launch(streams[0]));
    return {};
  };
  require(calls());
  require(runtime->capture(streams[0], calls, &graph));
  for (int replay = 0; replay < kReplays; ++replay) {
    const size_t which = static_cast<size_t>(replay) % problems.size();
    require(run->set_logits(problems[which].gate.logits));
    require(run->poison());
    require(runtime->replay(graph, streams[0]));
    streams.synchronize();
    harness::RouteOutputs got;
    require(run->collect(got));
    ASSERT_EQ(harness::difference(problems[which], got, chosen[which]), "") << "replay " << replay;
  }
  require(runtime->destroy_graph(graph));
}

}  // namespace
}  // namespace tokenyard::test
