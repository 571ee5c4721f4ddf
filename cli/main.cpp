// The tokenyard command: subcommands in files of their own, errors in one line.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>

#include "failure.hpp"
#include "help.hpp"
#include "subcommands.hpp"
#include "tokenyard/tokenyard.h"
#ifdef TOKENYARD_SIMT
#include "align/backend_simt.hpp"
#include "gate/backend_simt.hpp"
#include "route/backend_simt.hpp"
#include "training/backend_simt.hpp"
#endif

namespace {

using namespace tokenyard::cli;

// "tokenyard bench align", as far as the line was understood.
std::string command_name(const CLI::App& app) {
  std::string name = app.get_name();
  const CLI::App* level = &app;
  while (!level->get_subcommands().empty()) {
    level = level->get_subcommands().front();
    name += fmt::format(" {}", level->get_name());
  }
  return name;
}

int report(const CLI::App& app, std::string message, int exit_code) {
  // What the library's messages begin with, the command has said.
  for (const std::string operation : {"route: ", "align: ", "gate: ", "balance: "}) {
    if (message.starts_with(operation)) message.erase(0, operation.size());
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "{}: {}\n", command_name(app), message);
  return exit_code;
}

// What the user typed, without folders, which only this machine has: of a file its name, of the tool its own.
std::string command_line(const CLI::App& app, int argc, char** argv) {
  std::string line = app.get_name();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t value = argument.starts_with("--") ? argument.find('=') + 1 : 0;
    const size_t name = argument.rfind('/') + 1;
    line += " " + argument.substr(0, value) + argument.substr(std::max(value, name));
  }
  return line;
}

// Whether all that was printed arrived: a full disk or a closed pipe loses it silently otherwise.
int flushed(const CLI::App& app) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return 0;
  return report(app, "the output could not be written, expected a standard output with room", kExitFailure);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef TOKENYARD_SIMT
  tokenyard::register_simt_backends();
  tokenyard::gate::register_simt_operations();
  tokenyard::route::register_simt_operations();
  tokenyard::training::register_simt_operations();
#endif
  CLI::App app{
      "Routing for Mixture-of-Experts layers: from the router's logits to the experts of each\n"
      "token, and to the block-aligned, expert-sorted order that grouped matrix products need.",
      "tokenyard"};
  app.set_version_flag("--version", std::string("tokenyard ") + ty_version());
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Start with:\n"
      "  tokenyard align          a small problem, drawn as a picture\n"
      "  tokenyard info --why     which path runs which size here, and why");
  add_gate(app);
  add_align(app);
  add_route(app);
  add_balance(app);
  add_verify(app);
  add_bench(app, command_line(app, argc, argv));
  add_info(app);
  try {
    app.parse(argc, argv);
    return flushed(app);
  } catch (const CLI::Success& asked) {  // --help, --version
    app.exit(asked);
    return flushed(app);
  } catch (const CLI::ParseError& error) {
    return report(app, fmt::format("{} (see {} --help)", error.what(), command_name(app)), kExitUsage);
  } catch (const Failure& failure) {
    return report(app, failure.what(), failure.exit_code());
  } catch (const std::exception& error) {
    return report(app, error.what(), kExitFailure);
  }
}
