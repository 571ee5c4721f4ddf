// The CPU's result does not depend on the number of threads, even where a call would start only one.
#include <gtest/gtest.h>

#include <optional>

#include "align/contract.hpp"
#include "align/cpu.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

class CpuThreads : public testing::TestWithParam<int> {};

TEST_P(CpuThreads, DoNotMatter) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const harness::AlignProblem drawn = harness::draw(harness::draw_shape(seed, 3000));
    std::optional<harness::AlignRun> run;
    ASSERT_TRUE(harness::AlignRun::create({TY_CPU, 0}, drawn, {}, run).ok());
    align::Problem problem;
    ASSERT_TRUE(align::check(&run->args(), Pointers::kRequired, problem).ok());
    align::sort_on_cpu(problem, GetParam());
    harness::AlignOutputs got;
    const Status status = run->collect(got);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(harness::difference(got, harness::expected(drawn)), "") << drawn.shape.command();
  }
}

INSTANTIATE_TEST_SUITE_P(Align, CpuThreads, testing::Values(1, 2, 3, 7, 16));

TEST(CpuThreads, FewPairsAreSortedByTheCaller) {
  align::Problem problem{};
  problem.num_tokens = 1024;
  problem.top_k = 8;
  EXPECT_EQ(align::cpu_threads(problem, 64), 1);
  problem.num_tokens = 1 << 20;
  EXPECT_EQ(align::cpu_threads(problem, 64), 64);
  EXPECT_EQ(align::cpu_threads(problem, 1), 1);
}

}  // namespace
}  // namespace tokenyard::test
