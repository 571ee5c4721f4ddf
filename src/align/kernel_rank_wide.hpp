// Ranks of a tile's pairs among up to 4096 experts: how many pairs of the tile before each have its expert.
//
// A warp takes its rows one after the other and counts the experts in a table of its own. What a lane's
// addition finds there is its pair's rank, unless other lanes of the row have the same expert: then the count
// has moved on by more than one, and the lanes before are counted. Each expert's counts are prefixed over the
// warps at last.
//
// The pairs are not sorted: of thousands of experts each has too few pairs in a tile for neighbours to be
// worth it.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// `warp` is a sorter's warp, from 0. It has rows of pairs, so that (warp, row, lane) is their order.
template <class Thread, int kSorters, int kItems, int kExperts>
struct WideRanks {
  static constexpr int kWarps = kSorters / Thread::warp_size;
  static constexpr int kWords = kExperts / 2;  // of a warp's table
  static_assert(kSorters * kItems < 1 << 16 && kExperts < 1 << 16);

  typename Thread::template array<uint32_t, kSorters * kItems> pair;  // the rank in the warp above the expert
  typename Thread::template array<uint32_t, kWarps * kWords> counts;  // two experts' in a word

  struct Ranked {
    bool valid;  // whether it is a pair, or else of expert 0
    int32_t expert, rank;
  };

  static TY_DEVICE int32_t place(Thread& gpu, int warp, int row, int32_t rows) {
    return (warp * rows + row) * Thread::warp_size + gpu.lane();
  }

  // Expert -1: no pair.
  TY_DEVICE void put(int32_t place, int32_t expert) {
    pair(place) = expert >= 0 ? static_cast<uint32_t>(expert) : kNone;
  }

  // By each warp for its rows, when all their places are put.
  TY_DEVICE void rank(Thread& gpu, int warp, int32_t rows) {
    gpu.template zero<kWords, Thread::warp_size>(counts, warp * kWords, gpu.lane());
    gpu.sync_warp();
#pragma unroll 1
    for (int32_t row = 0; row < rows; ++row) {
      const int32_t at = place(gpu, warp, row, rows);
      const uint32_t expert = pair(at);
      const bool valid = expert != kNone;
      int32_t before = 0;
      int32_t through = 1;
      if (valid) before = half(gpu.fetch_add(counts(word(warp, expert)), 1u << shift(expert)), expert);
      gpu.sync_warp();
      if (valid) through = half(counts(word(warp, expert)), expert);
      if (gpu.any(through != before + 1)) {
        const auto same = gpu.match(static_cast<int32_t>(expert));
        before = through - gpu.popcount(same) + gpu.popcount(same & gpu.lanes_below());
      }
      if (valid) pair(at) = static_cast<uint32_t>(before) << 16 | expert;
      gpu.sync_warp();  // all have read the counts
    }
  }

  // Turns counts into how many pairs stand in the warps before, by the sorters when all have ranked.
  TY_DEVICE void prefix(int sorter, int32_t experts) {
#pragma unroll 1
    for (int32_t column = sorter; 2 * column < experts; column += kSorters) {
      uint32_t some[kWarps];  // loads first: a store would hold them up
#pragma unroll
      for (int w = 0; w < kWarps; ++w) some[w] = counts(w * kWords + column);
      uint32_t before = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        counts(w * kWords + column) = before;
        before += some[w];
      }
    }
  }

  // After it.
  TY_DEVICE Ranked ranked(int warp, int32_t place) {
    const uint32_t item = pair(place);
    if (item == kNone) return {false, 0, 0};
    const uint32_t expert = item & 0xffff;
    return {true, static_cast<int32_t>(expert),
            half(counts(word(warp, expert)), expert) + static_cast<int32_t>(item >> 16)};
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  static TY_DEVICE int word(int warp, uint32_t expert) {
    return warp * kWords + static_cast<int>(expert / 2);
  }
  static TY_DEVICE uint32_t shift(uint32_t expert) { return expert % 2 * 16; }
  static TY_DEVICE int32_t half(uint32_t both, uint32_t expert) {
    return static_cast<int32_t>(both >> shift(expert) & 0xffff);
  }
};

}  // namespace tokenyard::align
