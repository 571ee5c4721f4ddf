// Times gate on a device: see timing.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device_option.hpp"
#include "harness/gate_run.hpp"
#include "timing.hpp"

namespace tokenyard::cli {

// Inputs of one shape, each in device memory of its own, so that a call does not find its logits in the cache
// where the call before left them. All calls write one set of outputs.
class GateTimer {
 public:
  GateTimer(const Device& device, std::vector<harness::GateProblem> inputs,
            const harness::GateOptions& options);
  ~GateTimer();

  // "" if every input gives what it must, else the first mistake.
  std::string mistake();
  Timing measure();

 private:
  Status call(size_t input);

  const Device& device_;
  std::vector<harness::GateProblem> inputs_;
  std::vector<harness::GateRun> runs_;  // one for each input
  std::shared_ptr<void> stream_;
};

}  // namespace tokenyard::cli
