// Times calls on a GPU: events around the replays of a graph that holds many of them.
#pragma once

#include <functional>
#include <memory>

#include "quantiles.hpp"
#include "runtime/runtime.hpp"

namespace tokenyard::cli {

inline constexpr int kCallsInGraph = 20;
inline constexpr int kReplays = 60;

// What a call finds in the caches. Warm: what the calls before it left there; if each has inputs of its own,
// those lie in the second-level cache as long as all of them fit. Cold: nothing, because before each call
// more memory is overwritten than any such cache holds. That costs time, too, so a graph of the overwriting
// alone is replayed beside each replay and its time taken off.
enum class Caches { kWarm, kCold };

class GraphTimer {
 public:
  GraphTimer(Runtime& runtime, Stream stream, Caches caches);

  // µs a call of `call(i)`, i = 0 to kCallsInGraph - 1.
  Quantiles time(const std::function<Status(size_t)>& call) const;

 private:
  class CallGraph;

  Runtime& runtime_;
  Stream stream_;
  std::shared_ptr<void> flushed_;  // what is overwritten; null with warm caches
  std::shared_ptr<CallGraph> flushes_;
};

}  // namespace tokenyard::cli
