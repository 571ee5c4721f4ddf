// A stable sort of one tile by expert, inside a block's shared memory.
//
// A least-significant-digit radix sort: one pass where there are at most kBins experts, else two of
// sqrt-sized digits. In a pass each warp ranks its rows (kernel_rank.hpp), the counts of the warps are
// prefixed bin by bin, and the pairs are scattered to their places in the tile.
#pragma once

#include <cstdint>

#include "align/kernel_rank.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Thread, int kThreads, int kItems, int kPasses>
struct TileSort {
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kWarps = kThreads / Thread::warp_size;
  static constexpr int kDigitBits = kPasses == 1 ? 8 : 6;  // of 256 experts, or of 4096
  static constexpr int kBins = 1 << kDigitBits;
  static constexpr int kIndexBits = 13;
  static_assert(kTile <= 1 << kIndexBits);
  static_assert(kBins / 2 <= kThreads);
  using Ranks = RankTables<Thread, kThreads, kBins>;

  // A sorted pair: its expert above its index in the tile.
  static TY_DEVICE uint32_t pack(int32_t expert, int32_t index) {
    return static_cast<uint32_t>(expert) << kIndexBits | static_cast<uint32_t>(index);
  }
  static TY_DEVICE int32_t expert_of(uint32_t pair) { return static_cast<int32_t>(pair >> kIndexBits); }
  static TY_DEVICE int32_t index_of(uint32_t pair) {
    return static_cast<int32_t>(pair & ((1u << kIndexBits) - 1));
  }

  Ranks ranks;
  typename Thread::template array<uint32_t, kTile> pair;
  typename Thread::template array<int32_t, kWarps> partial;

  // Before every sort: early, while the ids are on their way.
  TY_DEVICE void prepare(Thread& gpu) { ranks.clear(gpu, gpu.warp()); }

  // Sorts the block's pairs. Item k < rows of a thread has index `offset + k * warp_size` in the tile;
  // expert -1 means no pair; `expert` is used up. Calls `meanwhile` about half way. Returns how many pairs
  // there are, and ends with a barrier: pair(0 .. that) hold them.
  template <class Meanwhile>
  TY_DEVICE int32_t sort(Thread& gpu, int32_t (&expert)[kItems], int32_t offset, int32_t rows,
                         Meanwhile meanwhile) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {  // the rank goes above the expert: registers are scarce here
      if (k >= rows) break;
      const int bin = expert[k] >= 0 ? expert[k] & (kBins - 1) : Ranks::spare_bin(gpu);
      const int32_t rank = ranks.rank_row(gpu, gpu.warp(), bin, k == 0, k + 1 < rows);
      if (expert[k] >= 0) expert[k] |= rank << kRankShift;
    }
    if (kPasses == 1) meanwhile();
    gpu.sync_block();
    const int32_t pairs = prefix_counts(gpu);
    gpu.sync_block();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows) break;
      if (expert[k] >= 0) {
        const int32_t e = expert[k] & ((1 << kRankShift) - 1);
        pair(ranks.count_of(gpu.warp(), e & (kBins - 1)) + (expert[k] >> kRankShift)) =
            pack(e, offset + k * Thread::warp_size);
      }
    }
    gpu.sync_block();
    if constexpr (kPasses == 2) {
      sort_by_high_digit(gpu, pairs);
      meanwhile();
    }
    return pairs;
  }

 private:
  static constexpr int kRankShift = 16;
  static_assert(kPasses * kDigitBits <= kRankShift && kItems * Thread::warp_size < 1 << (31 - kRankShift));

  // The pairs as the first pass left them, in warps' contiguous ranges again.
  TY_DEVICE void sort_by_high_digit(Thread& gpu, int32_t pairs) {
    constexpr int kShift = kIndexBits + kDigitBits;
    const int32_t rows = (pairs + kThreads - 1) / kThreads;
    uint32_t item[kItems];
    int32_t rank[kItems];
    prepare(gpu);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows) break;
      const int32_t at = (gpu.warp() * rows + k) * Thread::warp_size + gpu.lane();
      item[k] = at < pairs ? static_cast<uint32_t>(pair(at)) : kNone;
      const int bin = item[k] != kNone ? static_cast<int>(item[k] >> kShift) : Ranks::spare_bin(gpu);
      rank[k] = ranks.rank_row(gpu, gpu.warp(), bin, k == 0, k + 1 < rows);
    }
    gpu.sync_block();
    prefix_counts(gpu);
    gpu.sync_block();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows) break;
      if (item[k] != kNone) {
        pair(ranks.count_of(gpu.warp(), static_cast<int>(item[k] >> kShift)) + rank[k]) = item[k];
      }
    }
    gpu.sync_block();
  }

  // Turns the counts of (bin, warp) into how many pairs come before them, and returns how many there are.
  // A thread takes the two bins of a word; sums of a tile fit in 16 bits, so both are added at once.
  TY_DEVICE int32_t prefix_counts(Thread& gpu) {
    constexpr int kWords = kBins / 2;
    const int word = gpu.thread();
    uint32_t sum = 0;
    if (word < kWords) {
#pragma unroll 8
      for (int w = 0; w < kWarps; ++w) sum += ranks.word(w, word);
    }
    const int32_t even = static_cast<int32_t>(sum & 0xffff);
    const port::ScanResult scan =
        port::block_exclusive_sum<kThreads, kWords>(gpu, even + static_cast<int32_t>(sum >> 16), partial);
    uint32_t before = static_cast<uint32_t>(scan.before) | static_cast<uint32_t>(scan.before + even) << 16;
    if (word < kWords) {
      constexpr int kAtOnce = kWarps < 16 ? kWarps : 16;  // loads first: a store would hold them up
#pragma unroll 1
      for (int first = 0; first < kWarps; first += kAtOnce) {
        uint32_t count[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) count[i] = ranks.word(first + i, word);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          ranks.word(first + i, word) = before;
          before += count[i];
        }
      }
    }
    return scan.total;
  }

  static constexpr uint32_t kNone = 0xffffffffu;
};

}  // namespace tokenyard::align
