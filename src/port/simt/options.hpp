// How the executor runs the launches of this OS thread.
#pragma once

#include <cstdint>
#include <optional>

namespace tokenyard::port::simt {

struct Options {
  uint64_t seed = 0;         // decides the order of lanes, warps and blocks; the same seed replays it
  int blocks_in_flight = 4;  // rounded up to whole clusters; a cooperative launch has all of its blocks
};

// Sets the options of this OS thread's launches until the end of the scope. Outside of any scope the n-th
// launch of an OS thread has the seed n, so that a run sees many orders and sees the same ones again.
class Scope {
 public:
  explicit Scope(const Options& options);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::optional<Options> outer_;
};

// The options of the next launch.
Options options_of_next_launch();

}  // namespace tokenyard::port::simt
