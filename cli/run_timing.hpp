// Times what the harness runs on a device, gate, route and training: see timing.hpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device_option.hpp"
#include "failure.hpp"
#include "harness/gate_run.hpp"
#include "harness/route_run.hpp"
#include "timing.hpp"

namespace tokenyard::cli {

// Inputs of one shape, each in device memory of its own, so that a call does not find its own in the cache
// where the call before left them. All calls write one set of outputs. Problem, Run, Options and Outputs are
// the harness's for the operation.
template <class Problem, class Run, class Options, class Outputs>
class RunTimer {
 public:
  RunTimer(const Device& device, std::vector<Problem> inputs, Options options)
      : device_(device), inputs_(std::move(inputs)) {
    options.stream = stream();
    for (const Problem& input : inputs_) {
      std::optional<Run> run;
      require(Run::create(device.id, input, options, run));
      runs_.push_back(std::move(*run));
    }
  }
  ~RunTimer() { static_cast<void>(device_.runtime().synchronize(stream())); }

  // "" if `mistake` finds none in what any input gives, else the first.
  std::string first(const std::function<std::string(const Problem&, const Outputs&)>& mistake) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Outputs outputs;
      require(runs_[0].poison());
      require(call(i));
      require(device_.runtime().synchronize(stream()));
      require(runs_[0].collect(outputs));
      const std::string found = mistake(inputs_[i], outputs);
      if (!found.empty()) return found;
    }
    return "";
  }

  Timing measure() {
    return time_calls(device_, [this](size_t i) { return call(i); }, Caches::kWarm);
  }

 private:
  Stream stream() const { return device_.timed_stream.get(); }
  Status call(size_t input) { return runs_[0].launch(stream(), runs_[input % runs_.size()]); }

  const Device& device_;
  std::vector<Problem> inputs_;
  std::vector<Run> runs_;  // one for each input
};

using GateTimer =
    RunTimer<harness::GateProblem, harness::GateRun, harness::GateOptions, harness::GateOutputs>;
using RouteTimer =
    RunTimer<harness::RouteProblem, harness::RouteRun, harness::RouteOptions, harness::RouteOutputs>;

}  // namespace tokenyard::cli
