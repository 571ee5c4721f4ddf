// Tuning of gate, as data: how many lanes share a token, for how many tokens. plan() in src/gate/plan.cpp
// reads the rows; nothing else decides.
#pragma once

#include <cstdint>
#include <limits>

namespace tokenyard::tuning {

// Threads of a block, for kernels that hold a token in registers, in 512 experts' shared memory, in all of
// it.
inline constexpr int kGateThreads = 128;
inline constexpr int kGateAnyThreads = 128;
inline constexpr int kGateAnyLargeThreads = 64;

// The kernels there are: lanes that share a token, and experts that each of them holds in registers.
struct GateShape {
  int32_t lanes, items;
};

inline constexpr GateShape kNvidiaGateShapes[] = {{1, 8},  {8, 16}, {8, 32}, {16, 8}, {16, 16},
                                                  {32, 2}, {32, 4}, {32, 8}, {32, 16}};
inline constexpr GateShape kAmdGateShapes[] = {{1, 8}, {32, 4}, {32, 8}, {64, 1}, {64, 2}, {64, 4}, {64, 8}};
// The executor: one of each kind, and those with many experts a lane.
inline constexpr GateShape kSimt32GateShapes[] = {{1, 8}, {8, 32}, {16, 8}, {32, 2}, {32, 8}, {32, 16}};
inline constexpr GateShape kSimt64GateShapes[] = {{1, 8}, {32, 8}, {64, 1}, {64, 8}};

struct GateRow {
  int64_t max_tokens;  // the row serves batches up to this size
  int32_t lanes;       // of a token; where they cannot hold the experts, or K, the next row that can
};

inline constexpr int64_t kAnyTokens = std::numeric_limits<int64_t>::max();

// From probes of one shape on an H200; not yet measured row by row.
inline constexpr GateRow kNvidiaGateRows[] = {{1024, 32}, {4096, 16}, {kAnyTokens, 8}};

// AMD: by count, not measured.
inline constexpr GateRow kAmdGateRows[] = {{4096, 64}, {kAnyTokens, 32}};

// The executor: every kind of row at sizes that it can run in a moment.
inline constexpr GateRow kSimt32GateRows[] = {{8, 32}, {24, 16}, {kAnyTokens, 8}};
inline constexpr GateRow kSimt64GateRows[] = {{8, 64}, {kAnyTokens, 32}};

}  // namespace tokenyard::tuning
