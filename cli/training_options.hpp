// The options that describe a batch for the router's training: those of gate, whose ids it takes, and what
// the losses need beside them.
#pragma once

#include <CLI/CLI.hpp>

#include "harness/training_problem.hpp"

namespace tokenyard::cli {

// All but --tokens, which is a list in benchmarks. Defaults are what `shape` holds.
void add_training_options(CLI::App& command, harness::TrainingShape& shape);

// Refuses what is outside of the contract before it is drawn.
void check_shape(const harness::TrainingShape& shape);

}  // namespace tokenyard::cli
