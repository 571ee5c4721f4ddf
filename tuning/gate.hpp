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

// The kernels there are: lanes that share a token, experts that each of them holds in registers, and threads
// that a multiprocessor should hold at once, which bounds its registers; 0: as many as it gets.
struct GateShape {
  int32_t lanes, items, resident;
};

inline constexpr GateShape kNvidiaGateShapes[] = {{1, 8, 0},  {8, 16, 1024}, {8, 32, 1024}, {16, 16, 1024},
                                                  {32, 2, 0}, {32, 4, 0},    {32, 8, 0},    {32, 16, 0}};
inline constexpr GateShape kAmdGateShapes[] = {{1, 8, 0},  {32, 4, 0}, {32, 8, 0}, {64, 1, 0},
                                               {64, 2, 0}, {64, 4, 0}, {64, 8, 0}};
// The executor: one of each kind, and those with many experts a lane.
inline constexpr GateShape kSimt32GateShapes[] = {{1, 8, 0},  {8, 16, 0}, {8, 32, 0}, {16, 16, 0},
                                                  {32, 2, 0}, {32, 8, 0}, {32, 16, 0}};
inline constexpr GateShape kSimt64GateShapes[] = {{1, 8, 0}, {32, 8, 0}, {64, 1, 0}, {64, 8, 0}};

struct GateRow {
  int64_t max_tokens;  // the row serves batches up to this size
  int32_t lanes;       // of a token; where they cannot hold the experts, or K, the next row that can
};

inline constexpr int64_t kAnyTokens = std::numeric_limits<int64_t>::max();

// Measured on an H200 with DeepSeek-V3's 8 of 256, softmax 8 of 128 and sigmoid 8 of 256: at 2048 tokens a
// warp a token is some 10% faster, at 4096 eight lanes are.
inline constexpr GateRow kNvidiaGateRows[] = {{2048, 32}, {8192, 16}, {kAnyTokens, 8}};

// AMD: by count, not measured.
inline constexpr GateRow kAmdGateRows[] = {{4096, 64}, {kAnyTokens, 32}};

// The executor: every kind of row at sizes that it can run in a moment.
inline constexpr GateRow kSimt32GateRows[] = {{8, 32}, {16, 16}, {kAnyTokens, 8}};
inline constexpr GateRow kSimt64GateRows[] = {{8, 64}, {kAnyTokens, 32}};

}  // namespace tokenyard::tuning
