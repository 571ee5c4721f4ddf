// Times an operation on a device: by replaying a graph of calls where the backend has graphs, else by the
// clock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device_option.hpp"
#include "harness/align_run.hpp"

namespace tokenyard::cli {

inline constexpr int kCallsInGraph = 20;
inline constexpr int kReplays = 60;

struct Quantiles {
  double p20, p50, p80;
};

struct Timing {
  Quantiles us;                    // a call on the device; on a CPU the call itself
  std::optional<double> floor_us;  // an empty kernel, timed likewise just before; none on a CPU
  double host_ns;                  // what a call takes of the caller's time
};

// How times are taken on a device, in words.
std::string timer_name(const Device& device);

// Times `call(i)`, which enqueues a call with input i of kCallsInGraph or fewer, again and again.
Timing time_calls(const Device& device, Stream stream, const std::function<Status(size_t)>& call);

// A stream of the device, given back at its end.
std::shared_ptr<void> create_stream(const Device& device);

// Inputs of one shape, each in device memory of its own, so that a call does not find its ids in the cache
// where the call before left them. Outputs and workspace are one set, as in an engine.
class AlignTimer {
 public:
  AlignTimer(const Device& device, std::vector<harness::AlignProblem> inputs,
             const harness::AlignOptions& options);
  ~AlignTimer();

  // "" if every input gives what the reference says, else the first difference.
  std::string difference();
  Timing measure();

 private:
  Status call(size_t input);

  const Device& device_;
  std::vector<harness::AlignProblem> inputs_;
  harness::AlignOptions options_;
  std::vector<harness::AlignRun> runs_;  // one for each input; all calls write the first one's outputs
  std::shared_ptr<void> stream_;
  std::shared_ptr<void> workspace_memory_;
  std::shared_ptr<ty_workspace> workspace_;
};

}  // namespace tokenyard::cli
