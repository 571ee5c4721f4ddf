// A stable sort of one tile by up to 4096 experts, inside a block's shared memory.
//
// A least-significant-digit radix sort in two passes over six bits each. In a pass each warp ranks its rows
// (kernel_rank.hpp), each bin's counts are prefixed over the warps and the bins over each other, and the
// pairs are scattered to their places in the other half of `pair`. To keep the code and the registers few,
// passes and rows are loops, and ranks wait in shared memory.
#pragma once

#include <cstdint>

#include "align/kernel_rank.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

// `warp` is a sorter's warp, from 0. A pair's index is its place in the tile at first.
template <class Thread, int kSorters, int kItems>
struct WideTileSort {
  static constexpr int kTile = kSorters * kItems;
  static constexpr int kPasses = 2;
  static constexpr int kDigitBits = 6;
  static constexpr int kBins = 1 << kDigitBits;
  static constexpr int kIndexBits = 13;
  static_assert(kTile <= 1 << kIndexBits && kBins <= kSorters && kBins / 2 <= Thread::warp_size);
  using Ranks = RankTables<Thread, kSorters, kBins>;

  // A pair: its expert above its index.
  static TY_DEVICE int32_t expert_of(uint32_t pair) { return static_cast<int32_t>(pair >> kIndexBits); }
  static TY_DEVICE int32_t index_of(uint32_t pair) {
    return static_cast<int32_t>(pair & ((1u << kIndexBits) - 1));
  }

  Ranks ranks;
  typename Thread::template array<uint32_t, 2 * kTile> pair;  // sorted at last: the first `length`
  typename Thread::template array<uint16_t, kTile> rank;      // of each pair among its warp's of the bin
  typename Thread::template array<uint16_t, kBins> total;
  typename Thread::template array<int32_t, 1> length;

  TY_DEVICE void clear(Thread& gpu, int warp) { ranks.clear(gpu, warp); }

  // Expert -1: no pair.
  TY_DEVICE void put(int32_t index, int32_t expert) {
    pair(index) =
        expert >= 0 ? static_cast<uint32_t>(expert) << kIndexBits | static_cast<uint32_t>(index) : kNone;
  }

  // By the sorters alone, when every pair of the rows is put and the tables are clear. `sync` is their
  // barrier, and the end of it.
  template <class Sync>
  TY_DEVICE void sort(Thread& gpu, int warp, int32_t rows, Sync sync) {
    Extent extent{rows, rows * kSorters};
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
      rank_rows(gpu, warp, pass, extent);
      sync();
      const int bin = warp * Thread::warp_size + gpu.lane();
      if (bin < kBins) total(bin) = static_cast<uint16_t>(ranks.prefix(bin, 0));
      sync();
      scatter(gpu, warp, pass, extent);
      sync();
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  // What the sorters have in a pass: pairs in so many rows of each warp.
  struct Extent {
    int32_t rows, pairs;
  };

  TY_DEVICE void rank_rows(Thread& gpu, int warp, int pass, const Extent& extent) {
#pragma unroll 1
    for (int k = 0; k < extent.rows; ++k) {
      const int32_t at = place(gpu, warp, k, extent);
      const uint32_t item = item_at(at, pass, extent);
      const int bin = item != kNone ? bin_of(item, pass) : Ranks::spare_bin(gpu);
      rank(at) = static_cast<uint16_t>(ranks.rank_row(gpu, warp, bin, k == 0, k + 1 < extent.rows));
    }
  }

  // Leaves the extent of the next pass.
  TY_DEVICE void scatter(Thread& gpu, int warp, int pass, Extent& extent) {
    const int32_t pairs = add_bins_before(gpu, warp);
#pragma unroll 1
    for (int k = 0; k < extent.rows; ++k) {
      const int32_t at = place(gpu, warp, k, extent);
      const uint32_t item = item_at(at, pass, extent);
      if (item == kNone) continue;
      const int32_t to = ranks.count(warp, bin_of(item, pass)) + rank(at);
      pair((pass + 1) % 2 * kTile + to) = item;
    }
    gpu.sync_warp();
    ranks.clear(gpu, warp);
    extent = {(pairs + kSorters - 1) / kSorters, pairs};
    if (warp == 0 && gpu.lane() == 0) length(0) = pairs;
  }

  static TY_DEVICE int bin_of(uint32_t item, int pass) {
    return static_cast<int>(item >> (kIndexBits + pass * kDigitBits) & (kBins - 1));
  }
  // (warp, row, lane) is the order.
  static TY_DEVICE int32_t place(Thread& gpu, int warp, int row, const Extent& extent) {
    return (warp * extent.rows + row) * Thread::warp_size + gpu.lane();
  }
  TY_DEVICE uint32_t item_at(int32_t at, int pass, const Extent& extent) {
    uint32_t item = kNone;
    if (at < extent.pairs) item = pair(pass % 2 * kTile + at);
    return item;
  }

  // Adds the pairs in the bins before to the warp's own counts; a lane takes two bins. Returns how many pairs
  // there are in all.
  TY_DEVICE int32_t add_bins_before(Thread& gpu, int warp) {
    const int bin = 2 * gpu.lane();
    int32_t even = 0;
    int32_t odd = 0;
    if (bin < kBins) {
      even = total(bin);
      odd = total(bin + 1);
    }
    const int32_t through = port::warp_inclusive_sum<kBins / 2>(gpu, even + odd);
    if (bin < kBins) {
      ranks.count(warp, bin) += static_cast<uint16_t>(through - odd - even);
      ranks.count(warp, bin + 1) += static_cast<uint16_t>(through - odd);
    }
    gpu.sync_warp();
    return gpu.shfl(through, kBins / 2 - 1);
  }
};

}  // namespace tokenyard::align
