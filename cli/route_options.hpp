// The options that describe a problem for route: those of gate, and what align needs beside gate's ids.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "choice.hpp"
#include "device_option.hpp"
#include "harness/route_problem.hpp"

namespace tokenyard::cli {

const Choices<ty_route_path>& route_path_choices();
CLI::Option* add_route_path_option(CLI::App& command, std::optional<ty_route_path>& path,
                                   const std::string& description);

// All but --tokens, which is a list in benchmarks. Defaults are what `shape` holds.
void add_route_options(CLI::App& command, harness::RouteShape& shape);

// Refuses what is outside of the contract.
void check_shape(const harness::RouteShape& shape);

// Which launches a shape takes, and why.
std::string route_explanation(const Device& device, const harness::RouteShape& shape, ty_route_path path);

}  // namespace tokenyard::cli
