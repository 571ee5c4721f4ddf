// The timer over a runtime whose graphs take as long as the test says.
#include "graph_timer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "port/cpu_runtime.hpp"

namespace tokenyard::test {
namespace {

constexpr double kFlushUs = 45;

// Time passes when a graph is replayed: the sum of what was called while it was captured.
class ClockworkRuntime final : public CpuRuntime {
 public:
  Status fill(void*, unsigned char, size_t bytes, Stream) override {
    flushed_bytes = bytes;
    call("flush", kFlushUs);
    return {};
  }
  Status allocate(size_t, void** memory) override {
    *memory = this;  // never touched
    return {};
  }
  Status free(void*) override { return {}; }
  Status capture(Stream, const std::function<Status()>& calls, Graph* graph) override {
    captured_us_ = 0;
    captured.clear();
    TY_RETURN_IF_ERROR(calls());
    *graph = new double(captured_us_);
    return {};
  }
  Status replay(Graph graph, Stream) override {
    now_us_ += *static_cast<double*>(graph);
    ++replays;
    return {};
  }
  Status destroy_graph(Graph graph) override {
    delete static_cast<double*>(graph);
    return {};
  }
  Status create_event(Event* event) override {
    *event = new double(0);
    return {};
  }
  Status destroy_event(Event event) override {
    delete static_cast<double*>(event);
    return {};
  }
  Status record(Event event, Stream) override {
    *static_cast<double*>(event) = now_us_;
    return {};
  }
  Status elapsed_us(Event from, Event to, double& us) override {
    us = *static_cast<double*>(to) - *static_cast<double*>(from);
    return {};
  }

  void call(const std::string& name, double us) {
    captured.push_back(name);
    captured_us_ += us;
  }

  std::vector<std::string> captured;  // into the latest graph
  size_t flushed_bytes = 0;
  int replays = 0;

 private:
  double captured_us_ = 0;
  double now_us_ = 0;
};

// The calls of a graph take 0 to 19 µs: 9.5 in the mean.
class GraphTimer : public ::testing::TestWithParam<cli::Caches> {
 protected:
  cli::Quantiles time() {
    return cli::GraphTimer(runtime_, nullptr, GetParam()).time([&](size_t i) -> Status {
      runtime_.call(std::to_string(i), static_cast<double>(i));
      return {};
    });
  }

  ClockworkRuntime runtime_;
};

TEST_P(GraphTimer, TakesTheCallsAndNothingElse) {
  const cli::Quantiles us = time();
  EXPECT_DOUBLE_EQ(us.p20, 9.5);
  EXPECT_DOUBLE_EQ(us.p50, 9.5);
  EXPECT_DOUBLE_EQ(us.p80, 9.5);
  EXPECT_GE(runtime_.replays, cli::kReplays);
}

TEST_P(GraphTimer, FlushesBeforeEachCallIfColdIsAskedFor) {
  time();
  std::vector<std::string> expected;
  for (int i = 0; i < cli::kCallsInGraph; ++i) {
    if (GetParam() == cli::Caches::kCold) expected.emplace_back("flush");
    expected.push_back(std::to_string(i));
  }
  EXPECT_EQ(runtime_.captured, expected);
  EXPECT_EQ(runtime_.flushed_bytes >= size_t{100} << 20, GetParam() == cli::Caches::kCold);
}

INSTANTIATE_TEST_SUITE_P(, GraphTimer, ::testing::Values(cli::Caches::kWarm, cli::Caches::kCold),
                         [](const auto& test) { return test.param == cli::Caches::kCold ? "cold" : "warm"; });

}  // namespace
}  // namespace tokenyard::test
