// The options that describe a problem for align. They are AlignShape's fields, under the same names in every
// subcommand, so that the command that verify prints for a failing problem also runs under align.
#pragma once

#include <CLI/CLI.hpp>

#include "choice.hpp"
#include "harness/problem.hpp"

namespace tokenyard::cli {

const Choices<harness::Distribution>& distribution_choices();

// Defaults are what `shape` holds.
void add_problem_options(CLI::App& command, harness::AlignShape& shape);

// Refuses what is outside of the contract.
void check_shape(const harness::AlignShape& shape);

}  // namespace tokenyard::cli
