#include "help.hpp"

#include <utility>

namespace tokenyard::cli {
namespace {

constexpr size_t kOptionColumns = 30;

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kOptionColumns); }

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return "\n" + CLI::Formatter::make_usage(app, std::move(name));
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string name = CLI::Formatter::make_option_name(option, is_positional);
  const std::string negated = "{false}";
  const size_t at = name.find(negated);
  return at == std::string::npos ? name : name.erase(at, negated.size());
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";  // a flag
  const std::string value = option->get_default_str();
  return " " + option->get_type_name() + (value.empty() ? value : "=" + value);
}

std::string HelpFormatter::make_subcommand(const CLI::App* subcommand) const {
  const std::string description = subcommand->get_description();
  std::stringstream out;
  CLI::detail::format_help(out, subcommand->get_name(), description.substr(0, description.find('\n')),
                           get_column_width());
  return out.str();
}

}  // namespace tokenyard::cli
