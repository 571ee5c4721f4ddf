#include "timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "failure.hpp"

namespace tokenyard::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUps = 10;

// By the clock: at least this many calls, and at least this long.
constexpr int kFewestClockedCalls = 50;
constexpr double kShortestClockedUs = 200'000;

// Host time is taken over calls that the driver's queue holds without waiting.
constexpr int kQueuedCalls = 100;
constexpr int kQueues = 10;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Quantiles quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<size_t>(std::lround(share * static_cast<double>(samples.size() - 1)))];
  };
  return {at(0.2), at(0.5), at(0.8)};
}

// A runtime's handle, given back at the end of its life; an error there has nobody to tell.
std::shared_ptr<void> owned(Runtime& runtime, void* handle, Status (Runtime::*release)(void*)) {
  return {handle, [&runtime, release](void* old) { static_cast<void>((runtime.*release)(old)); }};
}

std::shared_ptr<void> create_event(Runtime& runtime) {
  Event event = nullptr;
  require(runtime.create_event(&event));
  return owned(runtime, event, &Runtime::destroy_event);
}

// µs a call of `call(i)`, i = 0 to kCallsInGraph - 1, over many replays of a graph of them.
Quantiles time_graph(Runtime& runtime, Stream stream, const std::function<Status(size_t)>& call) {
  Graph raw = nullptr;
  const auto all_calls = [&]() -> Status {
    for (size_t i = 0; i < kCallsInGraph; ++i) TY_RETURN_IF_ERROR(call(i));
    return {};
  };
  require(all_calls());  // what a driver loads at the first call must not be loaded under capture
  require(runtime.capture(stream, all_calls, &raw));
  const std::shared_ptr<void> graph = owned(runtime, raw, &Runtime::destroy_graph);
  const std::shared_ptr<void> begin = create_event(runtime);
  const std::shared_ptr<void> end = create_event(runtime);
  for (int i = 0; i < kWarmUps; ++i) require(runtime.replay(graph.get(), stream));
  require(runtime.synchronize(stream));

  std::vector<double> samples;
  for (int i = 0; i < kReplays; ++i) {
    double us = 0;
    require(runtime.record(begin.get(), stream));
    require(runtime.replay(graph.get(), stream));
    require(runtime.record(end.get(), stream));
    require(runtime.elapsed_us(begin.get(), end.get(), us));
    samples.push_back(us / kCallsInGraph);
  }
  return quantiles(samples);
}

Timing by_graph(Runtime& runtime, Stream stream, const std::function<Status(size_t)>& call) {
  Timing timing{};
  timing.floor_us = time_graph(runtime, stream, [&](size_t) { return runtime.launch_empty(stream); }).p50;
  timing.us = time_graph(runtime, stream, call);

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
  if (optional_outputs) return outputs;
  harness::AlignOutputs required;
  required.sorted_pair_ids = std::move(outputs.sorted_pair_ids);
  required.block_expert = std::move(outputs.block_expert);
  required.num_padded = outputs.num_padded;
  return required;
}

}  // namespace

std::string timer_name(const Device& device) {
  if (!device.is_gpu()) return "steady clock around each call";
  return fmt::format("events around graph replays, {} calls in a graph, {} replays", kCallsInGraph, kReplays);
}

Timing time_calls(const Device& device, Stream stream, const std::function<Status(size_t)>& call) {
  return device.is_gpu() ? by_graph(device.runtime(), stream, call) : by_clock(call);
}

std::shared_ptr<void> create_stream(const Device& device) {
  Stream stream = nullptr;
  require(device.runtime().create_stream(&stream));
  return owned(device.runtime(), stream, &Runtime::destroy_stream);
}

AlignTimer::AlignTimer(const Device& device, std::vector<harness::AlignProblem> inputs,
                       const harness::AlignOptions& options)
    : device_(device), inputs_(std::move(inputs)), options_(options) {
  Runtime& runtime = device.runtime();
  for (const harness::AlignProblem& input : inputs_) {
    std::optional<harness::AlignRun> run;
    require(harness::AlignRun::create(device.id, input, options, run));
    runs_.push_back(std::move(*run));
  }
  stream_ = create_stream(device);

  size_t bytes = 0;
  require(ty_align_workspace_size(device.id, &runs_[0].args(), &bytes));
  if (bytes == 0) return;
  void* memory = nullptr;
  require(runtime.allocate(bytes, &memory));
  workspace_memory_ = owned(runtime, memory, &Runtime::free);
  ty_workspace* workspace = nullptr;
  require(ty_workspace_create(device.id, memory, bytes, stream_.get(), &workspace));
  workspace_ = {workspace, ty_workspace_destroy};
}

AlignTimer::~AlignTimer() { static_cast<void>(device_.runtime().synchronize(stream_.get())); }

Status AlignTimer::call(size_t input) {
  ty_align_args args = runs_[0].args();
  args.topk_ids = runs_[input % runs_.size()].args().topk_ids;
  const ty_status code = ty_align(device_.id, &args, workspace_.get(), stream_.get());
  return code == TY_OK ? Status() : Status(code, ty_last_error());
}

std::string AlignTimer::difference() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    harness::AlignOutputs outputs;
    require(runs_[0].poison());
    require(call(i));
    require(device_.runtime().synchronize(stream_.get()));
    require(runs_[0].collect(outputs));
    const std::string found =
        harness::difference(as_requested(std::move(outputs), options_.optional_outputs),
                            as_requested(harness::expected(inputs_[i]), options_.optional_outputs));
    if (!found.empty()) return found;
  }
  return "";
}

Timing AlignTimer::measure() {
  return time_calls(device_, stream_.get(), [this](size_t i) { return call(i); });
}

}  // namespace tokenyard::cli
