#include "timing.hpp"

#include <fmt/format.h>

#include <chrono>

#include "failure.hpp"

namespace tokenyard::cli {
namespace {

using Clock = std::chrono::steady_clock;

// By the clock: at least this many calls, and at least this long.
constexpr int kWarmUps = 10;
constexpr int kFewestClockedCalls = 50;
constexpr double kShortestClockedUs = 200'000;

// Host time is taken over calls that the driver's queue holds without waiting.
constexpr int kQueuedCalls = 100;
constexpr int kQueues = 10;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Timing by_graph(Runtime& runtime, Stream stream, const std::function<Status(size_t)>& call, Caches caches) {
  const GraphTimer timer(runtime, stream, caches);
  Timing timing{};
  timing.floor_us = timer.time([&](size_t) { return runtime.launch_empty(stream); }).p50;
  timing.us = timer.time(call);

  std::vector<double> host_us;
  for (int queue = 0; queue < kQueues; ++queue) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kQueuedCalls; ++i) require(call(i));
    host_us.push_back(us_since(start) / kQueuedCalls);
    require(runtime.synchronize(stream));
  }
  timing.host_ns = 1000 * quantiles(host_us).p50;
  return timing;
}

Timing by_clock(const std::function<Status(size_t)>& call) {
  for (int i = 0; i < kWarmUps; ++i) require(call(i));
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < kFewestClockedCalls || us_since(start) < kShortestClockedUs) {
    const Clock::time_point before = Clock::now();
    require(call(samples.size()));
    samples.push_back(us_since(before));
  }
  Timing timing{};
  timing.us = quantiles(samples);
  timing.host_ns = 1000 * timing.us.p50;
  return timing;
}

// With or without the optional outputs, as the run had them.
harness::AlignOutputs as_requested(harness::AlignOutputs outputs, bool optional_outputs) {
  return optional_outputs ? outputs : harness::required_outputs(std::move(outputs));
}

}  // namespace

std::string timer_name(const Device& device) {
  if (!device.is_gpu()) return "steady clock around each call";
  return fmt::format("events around graph replays, {} calls in a graph, {} replays", kCallsInGraph, kReplays);
}

Timing time_calls(const Device& device, const std::function<Status(size_t)>& call, Caches caches) {
  return device.is_gpu() ? by_graph(device.runtime(), device.timed_stream.get(), call, caches)
                         : by_clock(call);
}

AlignTimer::AlignTimer(const Device& device, std::vector<harness::AlignProblem> inputs,
                       const harness::AlignOptions& options)
    : device_(device), inputs_(std::move(inputs)), options_(options) {
  options_.stream = stream();
  for (const harness::AlignProblem& input : inputs_) {
    std::optional<harness::AlignRun> run;
    require(harness::AlignRun::create(device.id, input, options_, run));
    runs_.push_back(std::move(*run));
  }
}

AlignTimer::~AlignTimer() { static_cast<void>(device_.runtime().synchronize(stream())); }

Status AlignTimer::call(const Implementation& implementation, size_t input) {
  ty_align_args with_input = args();
  with_input.topk_ids = runs_[input % runs_.size()].args().topk_ids;
  return implementation.call(with_input);
}

std::string AlignTimer::difference(const Implementation& implementation) {
  for (size_t i = expected_.size(); i < inputs_.size(); ++i)
    expected_.push_back(harness::expected(inputs_[i]));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    harness::AlignOutputs outputs;
    require(runs_[0].poison());
    require(call(implementation, i));
    require(device_.runtime().synchronize(stream()));
    require(runs_[0].collect(outputs));
    if (!implementation.stable) harness::sort_runs(outputs, expected_[i]);
    const std::string found = harness::difference(as_requested(std::move(outputs), options_.optional_outputs),
                                                  as_requested(expected_[i], options_.optional_outputs));
    if (!found.empty()) return found;
  }
  return "";
}

Timing AlignTimer::measure(const Implementation& implementation, Caches caches) {
  const auto one = [&](size_t i) { return call(implementation, i); };
  return time_calls(device_, one, caches);
}

}  // namespace tokenyard::cli
