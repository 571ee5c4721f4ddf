// Tuning of gate_backward, router_loss and balance, as data.
#pragma once

namespace tokenyard::tuning {

inline constexpr int kTrainingThreads = 256;  // of a block whose warps take a row each
inline constexpr int kSumThreads = 1024;
inline constexpr int kBackwardBlocks = 16;  // a multiprocessor, at most: its kernels loop over tokens
inline constexpr int kCountingBlocks = 8;   // likewise, of the counting of ids

// The teams of lanes that there are for a row: warps, and neighbouring experts that each lane holds in
// registers. The first that holds all experts is taken. Of more than one warp, they are a block.
struct RowShape {
  int warps, items;
};

inline constexpr RowShape kNvidiaRowShapes[] = {{1, 2}, {1, 8}, {1, 16}, {4, 16}, {8, 16}};
inline constexpr RowShape kAmdRowShapes[] = {{1, 1}, {1, 4}, {4, 4}, {16, 4}};
// The executor: one of each kind.
inline constexpr RowShape kSimt32RowShapes[] = {{1, 2}, {1, 8}, {8, 16}};
inline constexpr RowShape kSimt64RowShapes[] = {{1, 4}, {4, 16}};

}  // namespace tokenyard::tuning
