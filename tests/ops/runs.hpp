// The steps of a run for tests that do more than one launch. They throw where a step fails.
#pragma once

#include <string>

#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "runtime/status.hpp"

namespace tokenyard::test {

void require(const Status& status);

harness::AlignRun create(const std::string& device, const harness::AlignProblem& problem,
                         const harness::AlignOptions& options = {});

harness::AlignOutputs collected(harness::AlignRun& run);

// Poisons, launches, waits, collects.
harness::AlignOutputs launched(const std::string& device, harness::AlignRun& run);

}  // namespace tokenyard::test
