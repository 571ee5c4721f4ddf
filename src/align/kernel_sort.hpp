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
  static_assert(kBins <= kThreads);

  // A sorted pair: its expert above its index in the tile.
  static TY_DEVICE uint32_t pack(int32_t expert, int32_t index) {
    return static_cast<uint32_t>(expert) << kIndexBits | static_cast<uint32_t>(index);
  }
  static TY_DEVICE int32_t expert_of(uint32_t pair) { return static_cast<int32_t>(pair >> kIndexBits); }
  static TY_DEVICE int32_t index_of(uint32_t pair) {
    return static_cast<int32_t>(pair & ((1u << kIndexBits) - 1));
  }

  RankTables<Thread, kThreads, kBins> ranks;
  typename Thread::template array<uint32_t, kTile> pair;
  typename Thread::template array<int32_t, kWarps> partial;

  // Sorts the block's pairs. Item k of a thread has index `offset + k * warp_size` in the tile; expert -1
  // means no pair. Returns how many pairs there are; pair(0 .. that) hold them after the next barrier,
  // which this function ends with.
  TY_DEVICE int32_t sort(Thread& gpu, const int32_t (&expert)[kItems], int32_t offset) {
    uint32_t item[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      item[k] = expert[k] >= 0 ? pack(expert[k], offset + k * Thread::warp_size) : kNone;
    }
    int32_t pairs = 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass > 0) take(gpu, pairs, item);
      pairs = scatter(gpu, item, kIndexBits + pass * kDigitBits);
    }
    return pairs;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  // The pairs as the last pass left them, in warps' contiguous ranges again.
  TY_DEVICE void take(Thread& gpu, int32_t pairs, uint32_t (&item)[kItems]) {
    const int32_t rows = (pairs + kThreads - 1) / kThreads;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = (gpu.warp() * rows + k) * Thread::warp_size + gpu.lane();
      item[k] = k < rows && at < pairs ? static_cast<uint32_t>(pair(at)) : kNone;
    }
  }

  TY_DEVICE int32_t scatter(Thread& gpu, const uint32_t (&item)[kItems], int shift) {
    int32_t rank[kItems];
    ranks.clear(gpu, kBins);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      rank[k] = gpu.any(item[k] != kNone) ? ranks.rank_row(gpu, bin_of(item[k], shift)) : 0;
    }
    gpu.sync_block();

    const int bin = gpu.thread();
    int32_t in_bin = 0;
    if (bin < kBins) {
#pragma unroll 8
      for (int w = 0; w < kWarps; ++w) in_bin += ranks.count(w * kBins + bin);
    }
    const port::ScanResult scan = port::block_exclusive_sum<kThreads>(gpu, in_bin, partial);
    if (bin < kBins) {
      int32_t begin = scan.before;
#pragma unroll 8
      for (int w = 0; w < kWarps; ++w) {
        const int32_t count = ranks.count(w * kBins + bin);
        ranks.count(w * kBins + bin) = static_cast<uint16_t>(begin);
        begin += count;
      }
    }
    gpu.sync_block();

#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (item[k] != kNone) pair(ranks.count(gpu.warp() * kBins + bin_of(item[k], shift)) + rank[k]) = item[k];
    }
    gpu.sync_block();
    return scan.total;
  }

  static TY_DEVICE int bin_of(uint32_t item, int shift) {
    return item == kNone ? -1 : static_cast<int>(item >> shift & (kBins - 1));
  }
};

}  // namespace tokenyard::align
