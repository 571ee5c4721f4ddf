// Tuning of gate, as data: which kernels are compiled for each family of devices, how many lanes share a
// token in them, and for how many tokens. plan() in src/gate/plan.cpp reads the lists; nothing else decides.
#pragma once

#include <cstdint>

namespace tokenyard::tuning {

// Threads of a block, for kernels that hold a token in registers, in 512 experts' shared memory, in all of
// it.
inline constexpr int kGateThreads = 128;
inline constexpr int kGateAnyThreads = 128;
inline constexpr int kGateAnyLargeThreads = 64;

// What a kernel serves: 16-bit logits without a bias or groups, whose experts are sorted as packed words;
// anything without groups; groups with a bias; groups without one, of 16-bit logits and of float32.
inline constexpr unsigned kPacked = 1;
inline constexpr unsigned kUngrouped = 2;
inline constexpr unsigned kGrouped = 4;
inline constexpr unsigned kMasked16 = 8;
inline constexpr unsigned kMasked32 = 16;
inline constexpr unsigned kAnything = kUngrouped | kGrouped | kMasked16 | kMasked32;

// A kernel: lanes that share a token, experts that each of them holds in registers, threads that a
// multiprocessor should hold at once, which bounds its registers (0: as many as it gets), what it serves, and
// for batches of how many tokens and more.
struct GateShape {
  int32_t lanes, items, resident;
  unsigned serves;
  int64_t from;
};

// A line each:
// clang-format off

// In the order in which they are preferred: the first that serves the problem, holds its experts and is for
// so many tokens runs. Measured on an H200 with DeepSeek-V3's 8 of 256 in groups, Kimi-K2's 8 of 384, softmax
// 8 of 128 and of 256 and sigmoid 8 of 256, and with 10 of 512, for which sixteen lanes lose at 4096:
// bench/results/h200-gate-variants.json.
inline constexpr GateShape kNvidiaGateShapes[] = {
    {1, 8, 0, kUngrouped, 0},
    {8, 8, 1024, kPacked, 1025},
    {8, 16, 1024, kPacked, 1025},
    {8, 16, 1024, kUngrouped | kGrouped | kMasked16, 2049},
    {8, 32, 1024, kUngrouped, 8193},
    {8, 32, 1024, kPacked, 1025},
    {8, 32, 1024, kGrouped, 8193},
    {8, 32, 1024, kMasked16, 4097},
    {16, 16, 1024, kGrouped, 4097},
    {8, 32, 1024, kUngrouped, 2049},
    {32, 2, 0, kPacked, 0},
    {32, 4, 0, kPacked, 0},
    {16, 32, 1024, kUngrouped, 8192},
    {32, 8, 0, kPacked, 0},
    {32, 2, 0, kAnything, 0},
    {32, 4, 0, kAnything, 0},
    {32, 8, 0, kAnything, 0},
    {32, 16, 0, kAnything, 1025},
    {32, 16, 0, kPacked, 0},
    {32, 16, 0, kAnything, 0},
};

// AMD: by count, not measured.
inline constexpr GateShape kAmdGateShapes[] = {
    {1, 8, 0, kUngrouped, 0},
    {8, 8, 0, kPacked, 4097},
    {8, 16, 0, kPacked, 4097},
    {8, 32, 0, kPacked, 4097},
    {32, 4, 0, kAnything, 4097},
    {32, 8, 0, kAnything, 4097},
    {64, 1, 0, kAnything, 0},
    {64, 2, 0, kAnything, 0},
    {64, 4, 0, kAnything, 0},
    {64, 8, 0, kAnything, 0},
};

// The executor: one of each kind, and those with many experts a lane, at sizes that it can run in a moment.
inline constexpr GateShape kSimt32GateShapes[] = {
    {1, 8, 0, kUngrouped, 0},
    {8, 8, 0, kPacked, 9},
    {8, 16, 0, kPacked, 9},
    {8, 32, 0, kPacked, 17},
    {8, 16, 0, kAnything, 9},
    {8, 32, 0, kGrouped | kMasked16, 17},
    {16, 16, 0, kGrouped, 13},
    {8, 32, 0, kUngrouped, 9},
    {16, 32, 0, kUngrouped, 9},
    {32, 2, 0, kPacked, 0},
    {32, 16, 0, kPacked, 0},
    {32, 2, 0, kAnything, 0},
    {32, 8, 0, kAnything, 0},
    {32, 16, 0, kAnything, 0},
};
inline constexpr GateShape kSimt64GateShapes[] = {
    {1, 8, 0, kUngrouped, 0},
    {8, 32, 0, kPacked, 9},
    {32, 8, 0, kAnything, 9},
    {64, 1, 0, kAnything, 0},
    {64, 8, 0, kAnything, 0},
};

// clang-format on

}  // namespace tokenyard::tuning
