#include "gate_timing.hpp"

#include <optional>
#include <utility>

#include "failure.hpp"
#include "handle.hpp"

namespace tokenyard::cli {

GateTimer::GateTimer(const Device& device, std::vector<harness::GateProblem> inputs,
                     const harness::GateOptions& options)
    : device_(device), inputs_(std::move(inputs)) {
  for (const harness::GateProblem& input : inputs_) {
    std::optional<harness::GateRun> run;
    require(harness::GateRun::create(device.id, input, options, run));
    runs_.push_back(std::move(*run));
  }
  Stream stream = nullptr;
  require(device.runtime().create_stream(&stream));
  stream_ = owned(device.runtime(), stream, &Runtime::destroy_stream);
}

GateTimer::~GateTimer() { static_cast<void>(device_.runtime().synchronize(stream_.get())); }

Status GateTimer::call(size_t input) {
  ty_gate_args args = runs_[0].args();
  args.logits = runs_[input % runs_.size()].args().logits;
  const ty_status code = ty_gate(device_.id, &args, stream_.get());
  return code == TY_OK ? Status() : Status(code, ty_last_error());
}

// Against the CPU, which is held to the reference by its own tests.
std::string GateTimer::mistake() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    harness::GateOutputs got, want;
    require(runs_[0].poison());
    require(call(i));
    require(device_.runtime().synchronize(stream_.get()));
    require(runs_[0].collect(got));
    require(harness::run_gate({TY_CPU, 0}, inputs_[i], {.optional_outputs = !got.counts.empty()}, want));
    const std::string found = harness::mistake(inputs_[i], got, want);
    if (!found.empty()) return found;
  }
  return "";
}

Timing GateTimer::measure() {
  return time_calls(device_, stream_.get(), [this](size_t i) { return call(i); }, Caches::kWarm);
}

}  // namespace tokenyard::cli
