// Ranks inside a warp for a tile: how many earlier pairs of the warp have the same expert, for all of the
// warp's pairs at once.
//
// A lane has kEach consecutive pairs in each pass. As a token's experts are distinct, they mostly differ;
// then one bit a lane says it all: each lane ORs its bit into the masks of its pairs' bins, and the bits
// below its own are the pairs before. That is an atomic and a load a pair, and a pass needs no other before
// it. Where pairs of a lane are of one expert, those beyond the first are counted expert by expert.
//
// Of so few experts that this would be the rule, each has kEach bins: a lane's i-th pair goes to the i-th,
// and none meets another of its lane.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// The tables of a block's sorters lie side by side; only warp number `warp` of them itself touches its own
// between `clear` and the sorters' next barrier. Experts and passes are the same in all lanes.
template <class Thread, int kSorters, int kBins, int kPasses, int kEach>
struct TileRanks {
  static constexpr int kWarps = kSorters / Thread::warp_size;
  static_assert(kEach <= 4);  // repeats of a lane are counted in two bits
  using Mask = typename Thread::lane_mask;

  typename Thread::template array<Mask, kPasses * kWarps * kBins> mask;  // lanes with a pair of the bin
  // Pairs that the masks do not show; after `prefix`, pairs before the warp's own.
  typename Thread::template array<uint16_t, kWarps * kBins> counts;

  TY_DEVICE void clear(Thread& gpu, int warp) {
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      gpu.template zero<kBins, Thread::warp_size>(mask, cell(p, warp, 0), gpu.lane());
    }
    gpu.template zero<kBins, Thread::warp_size>(counts, warp * kBins, gpu.lane());
    gpu.sync_warp();
  }

  // Puts the rank of each pair above its expert, from bit 16 on. An expert below 0: no pair, and it stays so.
  TY_DEVICE void rank(Thread& gpu, int warp, int32_t passes, int32_t experts,
                      int32_t (&expert)[kPasses][kEach]) {
    if (few(experts)) {
      rank_few(gpu, warp, passes, expert);
    } else {
      rank_many(gpu, warp, passes, expert);
    }
  }

  // Turns an expert's counts of all warps into how many pairs come before each warp's, beginning with
  // `before`.
  TY_DEVICE void prefix(Thread& gpu, int32_t experts, int expert, int32_t before) {
    if (few(experts)) {
      prefix_bins<kEach>(gpu, expert, before);
    } else {
      prefix_bins<1>(gpu, expert, before);
    }
  }

  // After `prefix`, how many pairs of the expert come before the warp's first.
  TY_DEVICE decltype(auto) count(int warp, int expert) { return counts(warp * kBins + expert); }

 private:
  static TY_DEVICE bool few(int32_t experts) { return experts <= kBins / kEach; }
  static TY_DEVICE int cell(int pass, int warp, int bin) { return (pass * kWarps + warp) * kBins + bin; }
  static TY_DEVICE Mask own_bit(Thread& gpu) { return Mask{1} << gpu.lane(); }
  // The largest share of the warps of at most so many.
  static constexpr int at_once(int most) { return kWarps % most == 0 ? most : at_once(most - 1); }

  // How many of a lane's pairs before its i-th are of the same expert.
  static TY_DEVICE int earlier(const int32_t (&expert)[kEach], int i) {
    int count = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j) count += j < i && expert[j] == expert[i] ? 1 : 0;
    return count;
  }

  TY_DEVICE void rank_few(Thread& gpu, int warp, int32_t passes, int32_t (&expert)[kPasses][kEach]) {
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes) break;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] >= 0) gpu.or_bits(mask(cell(p, warp, kEach * expert[p][i] + i)), own_bit(gpu));
      }
    }
    gpu.sync_warp();
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes) break;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] < 0) continue;
        int32_t before = 0;
#pragma unroll
        for (int q = 0; q <= p; ++q) {
#pragma unroll
          for (int j = 0; j < kEach; ++j) {
            Mask lanes = mask(cell(q, warp, kEach * expert[p][i] + j));
            if (q == p) lanes &= j < i ? gpu.lanes_below() | own_bit(gpu) : gpu.lanes_below();
            before += gpu.popcount(lanes);
          }
        }
        expert[p][i] |= before << 16;
      }
    }
  }

  TY_DEVICE void rank_many(Thread& gpu, int warp, int32_t passes, int32_t (&expert)[kPasses][kEach]) {
    bool repeats[kPasses] = {};
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes) break;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] < 0) continue;
        gpu.or_bits(mask(cell(p, warp, expert[p][i])), own_bit(gpu));
        repeats[p] = repeats[p] || earlier(expert[p], i) > 0;
      }
      repeats[p] = gpu.any(repeats[p]);
    }
    gpu.sync_warp();
    bool repeated = false;  // in the passes before: `counts` are not all 0
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes) break;
      int32_t before[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        before[i] = 0;
        if (expert[p][i] < 0) continue;
        before[i] = gpu.popcount(mask(cell(p, warp, expert[p][i])) & gpu.lanes_below());
#pragma unroll
        for (int q = 0; q < p; ++q) before[i] += gpu.popcount(mask(cell(q, warp, expert[p][i])));
        if (repeated) before[i] += count(warp, expert[p][i]);
      }
      if (repeats[p]) {
        add_repeats(gpu, warp, expert[p], before);
        repeated = true;
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] >= 0) expert[p][i] |= before[i] << 16;
      }
    }
  }

  // Adds the pairs that are the second, third, … of their lane and expert to what stands before the pairs of
  // a pass, and to `counts`. Expert by expert: rarely is there more than one.
  TY_DEVICE void add_repeats(Thread& gpu, int warp, const int32_t (&expert)[kEach],
                             int32_t (&before)[kEach]) {
    uint32_t left = 0;  // a bit a pair
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      before[i] += earlier(expert, i);
      if (expert[i] >= 0 && earlier(expert, i) > 0) left |= 1u << i;
    }
    gpu.sync_warp();  // all have read the counts
#pragma unroll 1
    for (Mask lanes = gpu.ballot(left != 0); lanes != 0; lanes = gpu.ballot(left != 0)) {
      int32_t own = -1;
#pragma unroll
      for (int i = 0; i < kEach; ++i) own = (left >> i & 1) != 0 ? expert[i] : own;
      const int32_t chosen = gpu.shfl(own, gpu.lowest(lanes));
      uint32_t repeats = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[i] != chosen) continue;
        repeats += left >> i & 1;
        left &= ~(1u << i);
      }
      const Mask ones = gpu.ballot((repeats & 1) != 0);
      const Mask twos = gpu.ballot((repeats & 2) != 0);
      const int32_t below =
          gpu.popcount(ones & gpu.lanes_below()) + 2 * gpu.popcount(twos & gpu.lanes_below());
#pragma unroll
      for (int i = 0; i < kEach; ++i) before[i] += expert[i] == chosen ? below : 0;
      if (gpu.lane() == 0) {
        count(warp, chosen) += static_cast<uint16_t>(gpu.popcount(ones) + 2 * gpu.popcount(twos));
      }
    }
    gpu.sync_warp();
  }

  template <int kBinsEach>
  TY_DEVICE void prefix_bins(Thread& gpu, int expert, int32_t before) {
    constexpr int kAtOnce = at_once(8);  // loads first: a store would hold them up
#pragma unroll 1
    for (int first = 0; first < kWarps; first += kAtOnce) {
      int32_t some[kAtOnce];
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) {
        some[w] = count(first + w, expert);
#pragma unroll
        for (int p = 0; p < kPasses; ++p) {
#pragma unroll
          for (int i = 0; i < kBinsEach; ++i) {
            some[w] += gpu.popcount(mask(cell(p, first + w, kBinsEach * expert + i)));
          }
        }
      }
#pragma unroll
      for (int w = 0; w < kAtOnce; ++w) {
        count(first + w, expert) = static_cast<uint16_t>(before);
        before += some[w];
      }
    }
  }
};

}  // namespace tokenyard::align
