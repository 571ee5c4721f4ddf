// Random problems. The name of a test holds its seed, its failure the command that runs it again.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "device.hpp"
#include "expect.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

class RandomProblems : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void run(int64_t max_pairs) {
    const auto& [device, seed] = GetParam();
    TY_SKIP_IF_MISSING(device);
    const harness::AlignProblem problem =
        harness::draw(harness::draw_shape(static_cast<uint64_t>(seed), max_pairs));
    expect_right(device, problem, {.misalignment = seed % 4});
  }
};
class ManyPairs : public RandomProblems {};

TEST_P(RandomProblems, AreRight) { run(4096); }
TEST_P(ManyPairs, AreRight) { run(1 << 20); }

std::string seed_name(const testing::TestParamInfo<RandomProblems::ParamType>& info) {
  return std::get<0>(info.param) + "_seed_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Align, RandomProblems,
                         testing::Combine(testing::ValuesIn(kAllDevices), testing::Range(0, 120)), seed_name);
INSTANTIATE_TEST_SUITE_P(Align, ManyPairs,
                         testing::Combine(testing::Values("cpu", "cuda", "hip"), testing::Range(1000, 1040)),
                         seed_name);

}  // namespace
}  // namespace tokenyard::test
