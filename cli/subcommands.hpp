// One file per subcommand; each adds its options and its callback to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tokenyard::cli {

void add_align(CLI::App& app);
void add_verify(CLI::App& app);
// `command_line` is recorded with the results.
void add_bench(CLI::App& app, const std::string& command_line);
void add_info(CLI::App& app);

}  // namespace tokenyard::cli
