// The epochs by which blocks tell this launch's words from older ones (src/align/exchange.hpp) have 32 bits
// in a word: every word is written anew before they come round.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "align/exchange.hpp"
#include "device.hpp"
#include "expect.hpp"
#include "harness/align_run.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::test {
namespace {

// The executor's memory is the host's, so that the epoch can be set to years from now.
class Epoch : public testing::TestWithParam<std::string> {
 protected:
  void prepare(const ty_align_args& largest) {
    size_t bytes = 0;
    ASSERT_EQ(ty_align_workspace_size(device(), &largest, &bytes), TY_OK) << ty_last_error();
    ASSERT_GT(bytes, align::Exchange<>::kHeadBytes);
    Runtime* const runtime = find_backend(GetParam())->runtime;
    void* memory = nullptr;
    require(runtime->allocate(bytes, &memory));
    memory_ = {memory, [runtime](void* all) { require(runtime->free(all)); }};
    ty_workspace* workspace = nullptr;
    ASSERT_EQ(ty_workspace_create(device(), memory, bytes, nullptr, &workspace), TY_OK) << ty_last_error();
    workspace_ = {workspace, ty_workspace_destroy};
    num_words_ = (bytes - align::Exchange<>::kHeadBytes) / sizeof(uint64_t);
  }

  ty_device device() const { return {find_backend(GetParam())->id, 0}; }
  uint64_t& epoch() { return *static_cast<uint64_t*>(memory_.get()); }
  const uint64_t* words() const {
    return static_cast<const uint64_t*>(memory_.get()) + align::Exchange<>::kHeadBytes / sizeof(uint64_t);
  }

  void expect_right(const harness::AlignProblem& problem, ty_align_path path) {
    std::optional<harness::AlignRun> run;
    require(harness::AlignRun::create(device(), problem, {.path = path}, run));
    ASSERT_EQ(ty_align(device(), &run->args(), workspace_.get(), nullptr), TY_OK) << ty_last_error();
    harness::AlignOutputs outputs;
    require(run->collect(outputs));
    EXPECT_EQ(harness::difference(outputs, harness::expected(problem)), "") << "at epoch " << epoch();
  }

  std::shared_ptr<void> memory_;
  std::shared_ptr<ty_workspace> workspace_;
  size_t num_words_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Align, Epoch, testing::Values("simt32", "simt64"));

// More pairs than one block or cluster takes: those need no other's counts.
harness::AlignProblem problem(int64_t tokens, int32_t experts) {
  return harness::draw({.tokens = tokens, .top_k = 2, .experts = experts, .block = 16});
}

TEST_P(Epoch, RenewsEveryWordInTime) {
  TY_SKIP_IF_MISSING(GetParam());
  const harness::AlignProblem small = problem(1500, 8);
  std::optional<harness::AlignRun> largest;
  require(harness::AlignRun::create(device(), problem(3000, 600), {}, largest));
  ASSERT_NO_FATAL_FAILURE(prepare(largest->args()));
  constexpr uint64_t kRenewal = uint64_t{1} << 31;
  for (const uint64_t renewal : {kRenewal, 2 * kRenewal, 3 * kRenewal}) {
    epoch() = renewal - 2;
    expect_right(small, TY_ALIGN_GRID);
    ASSERT_EQ(epoch(), renewal - 1);
    expect_right(small, TY_ALIGN_GRID);
    ASSERT_EQ(epoch(), renewal);
    for (size_t i = 0; i < num_words_; ++i) {
      ASSERT_EQ(static_cast<uint32_t>(words()[i] >> align::kEpochBit), static_cast<uint32_t>(renewal))
          << "word " << i << " of " << num_words_;
    }
  }
}

TEST_P(Epoch, MayPassTheEndOfItsBits) {
  TY_SKIP_IF_MISSING(GetParam());
  const harness::AlignProblem problems[] = {problem(1500, 8), problem(3000, 600), problem(3500, 200),
                                            problem(2000, 300)};
  std::optional<harness::AlignRun> largest;
  require(harness::AlignRun::create(device(), problems[1], {}, largest));
  ASSERT_NO_FATAL_FAILURE(prepare(largest->args()));
  epoch() = (uint64_t{1} << 32) - 5;
  for (int round = 0; round < 2; ++round) {
    for (const harness::AlignProblem& one : problems) {
      expect_right(one, TY_ALIGN_GRID);
      expect_right(one, TY_ALIGN_SPLIT);
    }
  }
  EXPECT_EQ(epoch(), (uint64_t{1} << 32) + 3) << "two launches need no epoch";
}

}  // namespace
}  // namespace tokenyard::test
