// Times an operation on a device: by replaying a graph of calls where the backend has graphs, else by the
// clock.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device_option.hpp"
#include "graph_timer.hpp"
#include "harness/align_run.hpp"
#include "implementation.hpp"
#include "quantiles.hpp"

namespace tokenyard::cli {

struct Timing {
  Quantiles us;                    // a call on the device; on a CPU the call itself
  std::optional<double> floor_us;  // an empty kernel, timed likewise just before; none on a CPU
  double host_ns;                  // what a call takes of the caller's time
};

// How times are taken on a device, in words.
std::string timer_name(const Device& device);

// Times `call(i)`, which enqueues a call with the i-th of kCallsInGraph inputs or fewer, again and again.
Timing time_calls(const Device& device, const std::function<Status(size_t)>& call, Caches caches);

// Inputs of one shape, each in device memory of its own, so that a call does not find its ids where the call
// before read them. Outputs are one set, as in an engine.
class AlignTimer {
 public:
  AlignTimer(const Device& device, std::vector<harness::AlignProblem> inputs,
             const harness::AlignOptions& options);
  ~AlignTimer();

  // What implementations are made for, and the stream that they run on.
  const ty_align_args& args() const { return runs_[0].args(); }
  Stream stream() const { return device_.timed_stream.get(); }

  // "" if every input gives what the reference says, else the first difference.
  std::string difference(const Implementation& implementation);
  Timing measure(const Implementation& implementation, Caches caches = Caches::kWarm);

 private:
  Status call(const Implementation& implementation, size_t input);

  const Device& device_;
  std::vector<harness::AlignProblem> inputs_;
  harness::AlignOptions options_;
  std::vector<harness::AlignRun> runs_;  // one for each input; all calls write the first one's outputs
  std::vector<harness::AlignOutputs> expected_;  // likewise, once asked for a difference
};

}  // namespace tokenyard::cli
