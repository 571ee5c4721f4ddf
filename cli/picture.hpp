// Pictures of what an operation did, for a terminal. Each function returns finished lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/align_run.hpp"
#include "harness/gate_run.hpp"
#include "harness/problem.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {

// Whether a problem is small enough that every pair can be shown.
bool fits_blocks_picture(const harness::AlignProblem& problem);

// The tokens with the experts that they chose, and below them the blocks: a line each with its expert, its
// pairs as token.choice, and its padding as dots. An expert has one colour in both halves.
std::string blocks_picture(const Terminal& terminal, const harness::AlignProblem& problem,
                           const harness::AlignOutputs& outputs);

// A line for each token of a few: its experts with their weights.
bool fits_choices_picture(const harness::GateProblem& problem);
std::string choices_picture(const harness::GateProblem& problem, const harness::GateOutputs& outputs);

enum class LoadOrder { kById, kByLoad };

// A column for each expert, as high as its load, in as many rows of columns as the width asks for.
std::string loads_picture(const Terminal& terminal, std::vector<int32_t> counts, LoadOrder order);

}  // namespace tokenyard::cli
