// A result file of the benchmark, and its rows on the terminal. docs/benchmarking.md says what the fields
// mean.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "device_option.hpp"
#include "harness/problem.hpp"
#include "timing.hpp"

namespace tokenyard::cli {

using Json = nlohmann::ordered_json;

struct Measured {
  const Implementation& implementation;
  std::string path;  // "" for a baseline, which has one way
  const harness::AlignShape& shape;
  std::string routing;
  Caches caches;
  Timing timing;
};

Json to_row(const Measured& measured);
Json to_context(const Device& device, const std::string& command_line);

void print_header();
void print_row(const Json& row);

}  // namespace tokenyard::cli
