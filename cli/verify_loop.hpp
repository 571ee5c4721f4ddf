// What the subcommands of verify share: random problems, one after the other, until the time or the count is
// reached.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tokenyard::cli {

struct Tally {
  int64_t problems = 0;
  int64_t runs = 0;
  int64_t refused = 0;  // a way that does not offer the shape
};

struct VerifyLoop {
  std::optional<int64_t> count;
  std::optional<double> seconds;

  // --count and --seconds.
  void add_options(CLI::App& command);

  // Calls is_right(n, tally) for n = 0, 1, ..., which adds its runs to the tally and prints what is wrong,
  // with the command that shows it again. Problem n is drawn from `seed` + n; `one_shape`: its shape is
  // given. `ways` is what may refuse, for the error where nothing ran: "path grid".
  void run(uint64_t seed, bool one_shape, const std::string& ways,
           const std::function<bool(int64_t, Tally&)>& is_right) const;
};

// With --tokens the shape of the problems is given, and every option of a shape needs it, but --seed;
// without, shapes are drawn too, of at most the size that `most` says.
void separate_given_from_drawn(CLI::App& command, CLI::Option* most);

}  // namespace tokenyard::cli
