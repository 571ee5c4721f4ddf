// What every test of gate says in the end.
#pragma once

#include <string>
#include <vector>

#include "harness/gate_problem.hpp"
#include "harness/gate_run.hpp"

namespace tokenyard::test {

// Runs the problem on the device, with every number of lanes that it offers, and expects what the CPU says,
// to the last bit; of the CPU and of the reference, that they keep the contract.
void expect_gate_right(const std::string& device, const harness::GateProblem& problem,
                       harness::GateOptions options = {});

// One run.
harness::GateOutputs gate_outputs(const std::string& device, const harness::GateProblem& problem,
                                  const harness::GateOptions& options = {});

// The numbers of lanes a token that a device tells apart, 0 (its own choice) first.
std::vector<int32_t> lanes_of(const std::string& device);

}  // namespace tokenyard::test
