// What every test of gate says in the end.
#pragma once

#include <string>
#include <vector>

#include "harness/gate_problem.hpp"
#include "harness/gate_run.hpp"

namespace tokenyard::test {

// What DeepSeek-V3 chooses from.
inline harness::GateShape deepseek_v3(int64_t tokens) {
  return {.tokens = tokens,
          .experts = 256,
          .top_k = 8,
          .dtype = TY_BFLOAT16,
          .score = TY_GATE_SIGMOID,
          .bias = true,
          .groups = 8,
          .kept_groups = 4,
          .group_score = TY_GATE_GROUP_TOP2,
          .weights = TY_GATE_RENORMALIZED,
          .epsilon = 1e-20f,
          .scale = 2.5f};
}

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
