// What the grid path launches, from the lists of tuning, for the devices that no test runs on too.
#include "align/plan.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "tuning/align.hpp"

namespace tokenyard::test {
namespace {

// In every number of blocks that a device may hold.
TEST(GridPlan, TakesWholeStepsThatHoldAllPairs) {
  for (const tuning::AlignKernels* kernels :
       {&tuning::kHopper, &tuning::kAmpere, &tuning::kAmd, &tuning::kSimt}) {
    EXPECT_EQ(kernels->grid_step % kernels->grid_cluster, 0);
    for (const int64_t tokens : {0, 1, 300, 5000, 70'000, 100'000'000}) {
      align::Problem problem{};
      problem.num_tokens = tokens;
      problem.top_k = 8;
      for (int32_t blocks = kernels->grid_step; blocks <= kernels->grid_blocks; ++blocks) {
        const align::Plan plan = align::grid_plan(*kernels, problem, blocks);
        ASSERT_GT(plan.blocks, 0);
        ASSERT_LE(plan.blocks, blocks);
        ASSERT_EQ(plan.blocks % kernels->grid_step, 0) << tokens << " tokens in " << blocks;
        ASSERT_GE(int64_t{plan.blocks} * plan.chunk, problem.num_pairs());
      }
      EXPECT_EQ(align::grid_plan(*kernels, problem, kernels->grid_step - 1).blocks, 0)
          << "no room for a step";
    }
  }
}

}  // namespace
}  // namespace tokenyard::test
