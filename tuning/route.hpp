// Tuning of route, as data: the launches of one cluster that are compiled, in the order in which they are
// preferred. plan() in src/route/plan.cpp reads them; nothing else decides.
#pragma once

#include <cstdint>

namespace tokenyard::tuning {

// Tokens of each block of the cluster have 32 lanes each; the threads beyond them write padding meanwhile.
struct RouteLaunch {
  int threads, cluster, tokens;

  constexpr int64_t all_tokens() const { return int64_t{cluster} * tokens; }
};

// The first that holds all tokens runs. Larger batches take gate's launch and align's.
inline constexpr RouteLaunch kNvidiaRoute[] = {{512, 1, 8}, {512, 8, 8}};

// The executor: one block, and clusters.
inline constexpr RouteLaunch kSimtRoute[] = {{384, 1, 4}, {320, 4, 2}, {512, 8, 8}};

}  // namespace tokenyard::tuning
