// How --help is laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tokenyard::cli {

// Without CLI11's lists of what excludes and needs what, which an error tells when it matters. A list of
// subcommands shows the first line of each description.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* subcommand) const override;
};

}  // namespace tokenyard::cli
