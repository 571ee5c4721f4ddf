// Options whose value is one of a few words, or a comma list of them. Choices live as long as the program.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tokenyard::cli {

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

template <class T>
std::string words(const Choices<T>& choices, const char* separator) {
  std::vector<std::string> all;
  for (const auto& [word, value] : choices) all.push_back(word);
  return fmt::format("{}", fmt::join(all, separator));
}

template <class T>
T chosen(const std::string& option, const Choices<T>& choices, const std::string& given) {
  for (const auto& [word, value] : choices) {
    if (word == given) return value;
  }
  throw CLI::ValidationError(
      fmt::format("{} is {}, expected one of {}", option, given, words(choices, ", ")));
}

template <class T>
const std::string& word_of(const Choices<T>& choices, const T& value) {
  for (const auto& choice : choices) {
    if (choice.second == value) return choice.first;
  }
  throw std::logic_error("a value without a word");
}

// `target` is a T, whose value is the default, or an optional of it.
template <class T, class Target>
CLI::Option* add_choice(CLI::App& command, const std::string& option, const Choices<T>& choices,
                        Target& target, const std::string& description) {
  const auto take = [option, &choices, &target](const CLI::results_t& given) {
    target = chosen(option, choices, given.back());
    return true;
  };
  CLI::Option* added = command.add_option(option, take, description)->type_name("WORD");
  if constexpr (std::is_same_v<Target, T>) added->default_str(word_of(choices, target));
  return added;
}

template <class T>
CLI::Option* add_choice_list(CLI::App& command, const std::string& option, const Choices<T>& choices,
                             std::vector<T>& target, const std::string& description) {
  const auto take = [option, &choices, &target](const CLI::results_t& given) {
    target.clear();
    for (const std::string& word : given) target.push_back(chosen(option, choices, word));
    return true;
  };
  std::vector<std::string> defaults;
  defaults.reserve(target.size());
  for (const T& value : target) defaults.push_back(word_of(choices, value));
  return command.add_option(option, take, description)
      ->delimiter(',')
      ->expected(1, -1)
      ->type_name("WORD,...")
      ->default_str(fmt::format("{}", fmt::join(defaults, ",")));
}

}  // namespace tokenyard::cli
