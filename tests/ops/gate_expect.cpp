#include "gate_expect.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "device.hpp"
#include "gate/reference.hpp"
#include "runs.hpp"

namespace tokenyard::test {
namespace {

harness::GateOutputs of_reference(const harness::GateProblem& problem) {
  const gate::ReferenceOutput reference = gate::reference(problem.reference_input());
  harness::GateOutputs outputs;
  outputs.ids = reference.ids;
  outputs.weights.assign(reference.weights.begin(), reference.weights.end());
  outputs.counts = reference.counts;
  if (!problem.replicas.empty()) outputs.physical_counts = reference.physical_counts;
  return outputs;
}

}  // namespace

std::vector<int32_t> lanes_of(const std::string& device) {
  if (device == "cpu") return {0};
  return {0, 1, 8, 16, 32, 64};
}

harness::GateOutputs gate_outputs(const std::string& device, const harness::GateProblem& problem,
                                  const harness::GateOptions& options) {
  harness::GateOutputs outputs;
  require(harness::run_gate(device_id(device), problem, options, outputs));
  return outputs;
}

void expect_gate_right(const std::string& device, const harness::GateProblem& problem,
                       harness::GateOptions options) {
  SCOPED_TRACE(problem.shape.command() + " --device " + device);
  if (device == kReference) {
    EXPECT_EQ(harness::broken_promise(problem, of_reference(problem)), "");
    return;
  }
  const harness::GateOutputs want = gate_outputs("cpu", problem, options);
  if (device == "cpu") {
    EXPECT_EQ(harness::broken_promise(problem, want), "");
    return;
  }
  std::optional<harness::GateOutputs> first;
  for (const int32_t lanes : lanes_of(device)) {
    SCOPED_TRACE("--lanes " + std::to_string(lanes));
    options.lanes = lanes;
    harness::GateOutputs got;
    const Status status = harness::run_gate(device_id(device), problem, options, got);
    if (lanes != 0 && status.code() == TY_UNSUPPORTED) continue;
    ASSERT_TRUE(status.ok()) << status.message();
    if (!first) {
      EXPECT_EQ(harness::mistake(problem, got, want), "");
      first = got;
    }
    EXPECT_EQ(harness::difference(got, *first), "") << "another path of the same device";
  }
}

}  // namespace tokenyard::test
