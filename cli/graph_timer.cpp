#include "graph_timer.hpp"

#include <vector>

#include "failure.hpp"
#include "handle.hpp"

namespace tokenyard::cli {
namespace {

constexpr int kWarmUps = 10;

// More than twice the largest second-level cache that a GPU has by now (60 MB on an H200).
constexpr size_t kFlushedBytes = size_t{128} << 20;

std::shared_ptr<void> create_event(Runtime& runtime) {
  Event event = nullptr;
  require(runtime.create_event(&event));
  return owned(runtime, event, &Runtime::destroy_event);
}

}  // namespace

class GraphTimer::CallGraph {
 public:
  CallGraph(Runtime& runtime, Stream stream, const std::function<Status(size_t)>& call)
      : runtime_(runtime), stream_(stream), begin_(create_event(runtime)), end_(create_event(runtime)) {
    const auto all_calls = [&]() -> Status {
      for (size_t i = 0; i < kCallsInGraph; ++i) TY_RETURN_IF_ERROR(call(i));
      return {};
    };
    require(all_calls());  // what a driver loads at the first call must not be loaded under capture
    Graph raw = nullptr;
    require(runtime.capture(stream, all_calls, &raw));
    graph_ = owned(runtime, raw, &Runtime::destroy_graph);
  }

  void warm_up() const {
    for (int i = 0; i < kWarmUps; ++i) require(runtime_.replay(graph_.get(), stream_));
    require(runtime_.synchronize(stream_));
  }

  // One replay, in µs a call.
  double replay() const {
    double us = 0;
    require(runtime_.record(begin_.get(), stream_));
    require(runtime_.replay(graph_.get(), stream_));
    require(runtime_.record(end_.get(), stream_));
    require(runtime_.elapsed_us(begin_.get(), end_.get(), us));
    return us / kCallsInGraph;
  }

 private:
  Runtime& runtime_;
  Stream stream_;
  std::shared_ptr<void> begin_, end_, graph_;
};

GraphTimer::GraphTimer(Runtime& runtime, Stream stream, Caches caches) : runtime_(runtime), stream_(stream) {
  if (caches == Caches::kWarm) return;
  void* memory = nullptr;
  require(runtime.allocate(kFlushedBytes, &memory));
  flushed_ = owned(runtime, memory, &Runtime::free);
  flushes_ = std::make_shared<CallGraph>(
      runtime, stream, [&](size_t) { return runtime.fill(memory, 0, kFlushedBytes, stream); });
  flushes_->warm_up();
}

Quantiles GraphTimer::time(const std::function<Status(size_t)>& call) const {
  const CallGraph calls(runtime_, stream_, [&](size_t i) -> Status {
    if (flushes_) TY_RETURN_IF_ERROR(runtime_.fill(flushed_.get(), 0, kFlushedBytes, stream_));
    return call(i);
  });
  calls.warm_up();
  std::vector<double> samples;
  for (int i = 0; i < kReplays; ++i) {
    const double flush = flushes_ ? flushes_->replay() : 0;
    samples.push_back(calls.replay() - flush);
  }
  return quantiles(samples);
}

}  // namespace tokenyard::cli
