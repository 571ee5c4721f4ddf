// Tuning of gate_backward, router_loss and balance, as data.
#pragma once

namespace tokenyard::tuning {

inline constexpr int kTrainingThreads = 256;  // of a block whose warps take rows of their own
inline constexpr int kSumThreads = 1024;      // of one that adds up losses
inline constexpr int kBackwardBlocks = 16;    // a multiprocessor, at most: the kernels loop over tokens
inline constexpr int kBackwardItems = 16;     // experts that a lane holds in several rows, up to four
inline constexpr int kBackwardTokens = 16;    // a multiprocessor, from which on a warp takes several
inline constexpr int kCountedTokens = 256;    // of a block

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
