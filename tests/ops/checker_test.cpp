// The checks themselves: whatever is changed in a right result, both the comparison and the contract's
// sentences must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "harness/align_run.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {
namespace {

using harness::AlignOutputs;
using harness::AlignProblem;

class Checker : public testing::TestWithParam<harness::AlignShape> {
 protected:
  void expect_noticed(const AlignOutputs& wrong, const char* what) const {
    EXPECT_NE(harness::difference(wrong, right), "") << what;
    EXPECT_NE(harness::broken_promise(problem, wrong), "") << what;
  }

  const AlignProblem problem = harness::draw(GetParam());
  const AlignOutputs right = harness::expected(problem);
};

TEST_P(Checker, FindsNothingWrongWithTheRightResult) {
  EXPECT_EQ(harness::difference(right, right), "");
  EXPECT_EQ(harness::broken_promise(problem, right), "");
}

TEST_P(Checker, NoticesEachEntryThatIsChanged) {
  const std::vector<std::pair<const char*, std::vector<int32_t> AlignOutputs::*>> outputs{
      {"sorted_pair_ids", &AlignOutputs::sorted_pair_ids},
      {"block_expert", &AlignOutputs::block_expert},
      {"counts", &AlignOutputs::counts},
      {"offsets", &AlignOutputs::offsets},
      {"inverse", &AlignOutputs::inverse},
      {"block_rows", &AlignOutputs::block_rows}};
  const int32_t poison = static_cast<int32_t>(0xEEEEEEEE);
  for (const auto& [name, output] : outputs) {
    for (size_t i = 0; i < (right.*output).size(); ++i) {
      for (const int32_t wrong_entry : {(right.*output)[i] + 1, (right.*output)[i] - 1, poison}) {
        AlignOutputs wrong = right;
        (wrong.*output)[i] = wrong_entry;
        expect_noticed(wrong, name);
      }
    }
    AlignOutputs longer = right;
    (longer.*output).push_back(0);
    expect_noticed(longer, name);
  }
  for (const int32_t change : {1, -1, GetParam().block, -GetParam().block}) {
    AlignOutputs wrong = right;
    wrong.num_padded += change;
    expect_noticed(wrong, "num_padded");
    wrong = right;
    wrong.num_dropped += change;
    expect_noticed(wrong, "num_dropped");
  }
}

// Whatever the order inside an expert's run, sorting gives the stable one; no entry may cross its border.
TEST_P(Checker, SortsEachExpertsPairsAndNothingElse) {
  AlignOutputs reversed = right;
  for (size_t expert = 0; expert < right.counts.size(); ++expert) {
    const auto first = reversed.sorted_pair_ids.begin() + right.offsets[expert];
    std::reverse(first, first + right.counts[expert]);
  }
  harness::sort_runs(reversed, right);
  EXPECT_EQ(harness::difference(reversed, right), "");
  for (size_t expert = 0; expert < right.counts.size(); ++expert) {
    if (right.counts[expert] == 0) continue;
    const auto last = static_cast<size_t>(right.offsets[expert] + right.counts[expert] - 1);
    for (const int32_t wrong_entry : {right.sorted_pair_ids[last] + 1, right.sorted_pair_ids[last] - 1}) {
      AlignOutputs wrong = right;
      wrong.sorted_pair_ids[last] = wrong_entry;
      harness::sort_runs(wrong, right);
      EXPECT_NE(harness::difference(wrong, right), "") << "expert " << expert;
    }
    if (last + 1 == right.sorted_pair_ids.size()) continue;
    AlignOutputs wrong = right;
    std::swap(wrong.sorted_pair_ids[last], wrong.sorted_pair_ids[last + 1]);
    harness::sort_runs(wrong, right);
    EXPECT_NE(harness::difference(wrong, right), "") << "an exchange over the border of expert " << expert;
  }
}

// An unstable order, with an inverse that agrees.
TEST_P(Checker, NoticesEachExchangeOfNeighbours) {
  for (size_t slot = 1; slot < right.sorted_pair_ids.size(); ++slot) {
    AlignOutputs wrong = right;
    int32_t& a = wrong.sorted_pair_ids[slot - 1];
    int32_t& b = wrong.sorted_pair_ids[slot];
    if (a == b) continue;  // padding
    std::swap(a, b);
    for (const size_t at : {slot - 1, slot}) {
      const auto pair = static_cast<size_t>(wrong.sorted_pair_ids[at]);
      if (pair < wrong.inverse.size()) wrong.inverse[pair] = static_cast<int32_t>(at);
    }
    expect_noticed(wrong, "an exchange");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Align, Checker,
    testing::Values(
        harness::AlignShape{.tokens = 40, .top_k = 3, .experts = 9, .block = 4, .extra_capacity = 5},
        harness::AlignShape{.tokens = 40, .top_k = 3, .experts = 9, .block = 4, .invalid_ids = true},
        harness::AlignShape{.tokens = 30, .top_k = 4, .experts = 12, .block = 1, .local_experts = 5},
        harness::AlignShape{.tokens = 25, .top_k = 2, .experts = 3, .block = 7, .duplicates = true}));

}  // namespace
}  // namespace tokenyard::test
