// The options that describe a problem for gate. They are GateShape's fields, under the same names in every
// subcommand, so that the command that verify prints for a failing problem also runs under gate.
#pragma once

#include <CLI/CLI.hpp>

#include "choice.hpp"
#include "device_option.hpp"
#include "harness/gate_problem.hpp"

namespace tokenyard::cli {

const Choices<ty_dtype>& logits_dtype_choices();
const Choices<harness::Logits>& logits_choices();

// All but --tokens, which is a list in benchmarks. Defaults are what `shape` holds.
void add_gate_options(CLI::App& command, harness::GateShape& shape);
CLI::Option* add_tokens_option(CLI::App& command, harness::GateShape& shape);
CLI::Option* add_lanes_option(CLI::App& command, int32_t& lanes, const std::string& description);

// Refuses lanes where there are none.
void expect_lanes(const Device& device, int32_t lanes);

// --preset, which sets experts, K and every option of the choice at once.
CLI::Option* add_preset_option(CLI::App& command, harness::GateShape& shape);

// Refuses what is outside of the contract.
void check_shape(const harness::GateShape& shape);

}  // namespace tokenyard::cli
