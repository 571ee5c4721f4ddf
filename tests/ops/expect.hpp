// What every test of align says in the end.
#pragma once

#include <string>

#include "harness/align_run.hpp"
#include "harness/problem.hpp"

namespace tokenyard::test {

// Runs the problem on the device, on each of its paths, and expects what the reference says; of the reference
// itself, that it keeps the contract.
void expect_right(const std::string& device, const harness::AlignProblem& problem,
                  harness::AlignOptions options = {});

// Expects the outputs of one run, which may lack the optional ones.
void expect_same(const harness::AlignOutputs& got, harness::AlignOutputs want,
                 const harness::AlignOptions& options);

}  // namespace tokenyard::test
