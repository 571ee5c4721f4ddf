#include "verify_loop.hpp"

#include <fmt/format.h>

#include <chrono>

#include "failure.hpp"
#include "number.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDefaultCount = 200;
constexpr double kBetweenUpdates = 0.1;  // seconds

std::string plural(int64_t number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace

void VerifyLoop::add_options(CLI::App& command) {
  add_number(command, "--count", count, "stop after so many problems; by default 200, or\n1 of a given shape",
             {.low = 1});
  add_number(command, "--seconds", seconds, "stop after so many seconds", {0.001, 1e9})->type_name("S");
}

void separate_given_from_drawn(CLI::App& command, CLI::Option* most) {
  CLI::Option* tokens = command.get_option("--tokens");
  most->excludes(tokens);
  for (CLI::Option* option : command.get_options()) {
    if (option->get_group() == "Problem" && option != tokens && !option->check_name("--seed")) {
      option->needs(tokens);
    }
  }
}

void VerifyLoop::run(uint64_t seed, bool one_shape, const std::string& ways,
                     const std::function<bool(int64_t, Tally&)>& is_right) const {
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Tally tally;
  const auto is_done = [&] {
    if (seconds && !(elapsed() < *seconds)) return true;
    if (count) return tally.problems >= *count;
    return !seconds && tally.problems >= (one_shape ? 1 : kDefaultCount);
  };
  double shown = 0;
  for (; !is_done(); ++tally.problems) {
    if (!is_right(tally.problems, tally)) {
      throw Failure(fmt::format("problem {} (seed {}) is wrong", tally.problems,
                                seed + static_cast<uint64_t>(tally.problems)));
    }
    if (elapsed() - shown >= kBetweenUpdates) {
      shown = elapsed();
      show_progress(fmt::format("{} problems, {:.0f} s", tally.problems, shown));
    }
  }
  clear_progress();
  if (tally.runs == 0) {
    throw Failure(
        fmt::format("nothing ran: {} does not offer what was drawn; expected one run at least: leave the "
                    "choice to the library, or take smaller problems",
                    ways));
  }
  const std::string refused = tally.refused == 0 ? "" : fmt::format(", {} refused", tally.refused);
  fmt::print("  {} from seed {}, {}{}, {:.1f} s: every output is right\n", plural(tally.problems, "problem"),
             seed, plural(tally.runs, "run"), refused, elapsed());
}

}  // namespace tokenyard::cli
