// One file per subcommand; each adds its options and its callback to the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tokenyard::cli {

void add_align(CLI::App& app);
void add_gate(CLI::App& app);
void add_route(CLI::App& app);
void add_balance(CLI::App& app);
void add_verify(CLI::App& app);
// `command_line` is recorded with the results.
void add_bench(CLI::App& app, const std::string& command_line);
void add_info(CLI::App& app);

// What `verify` and `bench` offer for the other operations.
void add_verify_gate(CLI::App& verify);
void add_verify_route(CLI::App& verify);
void add_verify_training(CLI::App& verify);
void add_bench_gate(CLI::App& bench, const std::string& command_line);
void add_bench_route(CLI::App& bench, const std::string& command_line);
void add_bench_training(CLI::App& bench, const std::string& command_line);

}  // namespace tokenyard::cli
