// Options whose value is a number, or a comma list of them. What is no such number, or out of range, is
// refused as it was typed.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace tokenyard::cli {

template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();

  std::string words() const {
    constexpr bool whole = std::is_integral_v<T>;
    if (low != std::numeric_limits<T>::lowest() || std::is_unsigned_v<T>)
      return fmt::format("a {} from {} to {}", whole ? "whole number" : "number", low, high);
    return whole ? fmt::format("a whole number of {} bits", 8 * sizeof(T)) : "a finite number";
  }
};

// NaN and infinities are in no range.
template <class T>
T number_of(const std::string& option, const std::string& given, const Range<T>& range) {
  T value{};
  const char* const end = given.data() + given.size();
  const auto [rest, error] = std::from_chars(given.data(), end, value);
  if (error == std::errc() && rest == end && value >= range.low && value <= range.high) return value;
  throw CLI::ValidationError(fmt::format("{} is {}, expected {}", option, given, range.words()));
}

template <class Target>
struct NumberOf {
  using type = Target;
};
template <class T>
struct NumberOf<std::optional<T>> {
  using type = T;
};

// `target` is a number, whose value is the default, or an optional of one.
template <class Target, class T = typename NumberOf<Target>::type>
CLI::Option* add_number(CLI::App& command, const std::string& option, Target& target,
                        const std::string& description, const Range<T>& range = {}) {
  const auto take = [option, &target, range](const CLI::results_t& given) {
    target = number_of(option, given.back(), range);
    return true;
  };
  CLI::Option* added = command.add_option(option, take, description)->type_name("N");
  if constexpr (std::is_same_v<Target, T>) added->default_str(fmt::to_string(target));
  return added;
}

template <class T>
CLI::Option* add_numbers(CLI::App& command, const std::string& option, std::vector<T>& target,
                         const std::string& description) {
  const auto take = [option, &target](const CLI::results_t& given) {
    target.clear();
    for (const std::string& each : given) target.push_back(number_of(option, each, Range<T>()));
    return true;
  };
  return command.add_option(option, take, description)
      ->delimiter(',')
      ->expected(1, -1)
      ->type_name("N,...")
      ->default_str(fmt::format("{}", fmt::join(target, ",")));
}

}  // namespace tokenyard::cli
