// Tuning of route, as data: the launches of one cluster that are compiled, in the order in which they are
// preferred. plan() in src/route/plan.cpp reads them; nothing else decides.
#pragma once

#include <cstdint>

namespace tokenyard::tuning {

// Tokens of each block of the cluster have 32 lanes each; the threads beyond them write padding meanwhile.
// One token alone has a kernel of its own.
struct RouteLaunch {
  int threads, cluster, tokens;

  constexpr int64_t all_tokens() const { return int64_t{cluster} * tokens; }
};

// The first that holds all tokens runs. Larger batches take gate's launch and align's. Four tokens a block
// were faster than eight on an H200 (bench/results/h200-route-variants.json), and at 64 tokens two launches
// (3.19 against 3.28 µs, bench/results/h200-route.json).
inline constexpr RouteLaunch kNvidiaRoute[] = {{288, 1, 1}, {256, 1, 4}, {256, 4, 4}, {256, 8, 4}};

// The executor: a token, one block, and clusters.
inline constexpr RouteLaunch kSimtRoute[] = {{64, 1, 1}, {256, 1, 4}, {512, 8, 8}};

}  // namespace tokenyard::tuning
