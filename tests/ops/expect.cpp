#include "expect.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "device.hpp"

namespace tokenyard::test {
namespace {

// Every device's path for small batches takes as many pairs at least.
constexpr int64_t kFewestPairsEverywhere = 4096;

}  // namespace

void expect_same(const harness::AlignOutputs& got, harness::AlignOutputs want,
                 const harness::AlignOptions& options) {
  if (!options.optional_outputs) want = harness::required_outputs(std::move(want));
  EXPECT_EQ(harness::difference(got, want), "");
}

void expect_right(const std::string& device, const harness::AlignProblem& problem,
                  harness::AlignOptions options) {
  SCOPED_TRACE(problem.shape.command() + " --device " + device);
  const harness::AlignOutputs want = harness::expected(problem);
  if (device == kReference) {
    EXPECT_EQ(harness::broken_promise(problem, want), "");
    return;
  }
  for (const ty_align_path path : paths_of(device)) {
    SCOPED_TRACE(std::string("--path ") + path_name(path));
    options.path = path;
    harness::AlignOutputs got;
    const Status status = harness::run_align(device_id(device), problem, options, got);
    if (status.code() == TY_UNSUPPORTED && path == TY_ALIGN_EVERYWHERE) {
      EXPECT_GT(problem.shape.tokens * problem.shape.top_k, kFewestPairsEverywhere) << status.message();
      continue;
    }
    ASSERT_TRUE(status.ok()) << status.message();
    expect_same(got, want, options);
  }
}

}  // namespace tokenyard::test
