// Random problems for gate. The name of a test holds its seed, its failure the command that runs it again.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "device.hpp"
#include "gate_expect.hpp"

namespace tokenyard::test {
namespace {

class GateRandom : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void run(int64_t max_logits) {
    const auto& [device, seed] = GetParam();
    TY_SKIP_IF_MISSING(device);
    const harness::GateProblem problem =
        harness::draw(harness::draw_gate_shape(static_cast<uint64_t>(seed), max_logits));
    expect_gate_right(device, problem, {.optional_outputs = seed % 3 != 0, .misalignment = seed % 4});
  }
};
class GateRandomLarge : public GateRandom {};

TEST_P(GateRandom, IsRight) { run(3000); }
TEST_P(GateRandomLarge, IsRight) { run(1 << 19); }

std::string seed_name(const testing::TestParamInfo<GateRandom::ParamType>& info) {
  return std::get<0>(info.param) + "_seed_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Gate, GateRandom,
                         testing::Combine(testing::ValuesIn(kAllDevices), testing::Range(0, 60)), seed_name);
INSTANTIATE_TEST_SUITE_P(Gate, GateRandomLarge,
                         testing::Combine(testing::Values(kReference, "cpu", "cuda", "hip"),
                                          testing::Range(1000, 1016)),
                         seed_name);

}  // namespace
}  // namespace tokenyard::test
