// Runs of the router's training on a device by its name. They throw where a step fails.
#pragma once

#include <string>
#include <vector>

#include "device.hpp"
#include "harness/training_run.hpp"
#include "runs.hpp"

namespace tokenyard::test {

inline std::vector<float> backward_on(const std::string& device, const harness::BackwardProblem& problem,
                                      int misalignment = 0) {
  std::vector<float> gradient;
  require(harness::run_backward(device_id(device), problem, {.misalignment = misalignment}, gradient));
  return gradient;
}

inline harness::LossOutputs losses_on(const std::string& device, const harness::LossProblem& problem,
                                      const harness::TrainingOptions& options = {}) {
  harness::LossOutputs outputs;
  require(harness::run_loss(device_id(device), problem, options, outputs));
  return outputs;
}

inline harness::BalanceOutputs balance_on(const std::string& device, const harness::BalanceProblem& problem) {
  harness::BalanceOutputs outputs;
  require(harness::run_balance(device_id(device), problem, {.misalignment = 1}, outputs));
  return outputs;
}

}  // namespace tokenyard::test
