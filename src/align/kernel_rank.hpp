// Ranks inside a warp: how many earlier pairs of the warp fall into the same bin.
//
// A row is one pair per lane. Each lane ORs its bit into the bin's mask; the bits below its own are the
// pairs before it in the row; a running count per bin carries the rows before. Atomics without a return
// value on masks cost less than half of a ballot per bit of the bin and a tenth of a match (measured on
// Hopper), and need no knowledge of how many bins there are.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// One warp's tables, kBins each; those of a block lie side by side. Only the warp itself touches them
// between `clear` and the block's next barrier.
template <class Thread, int kThreads, int kBins>
struct RankTables {
  static constexpr int kWarps = kThreads / Thread::warp_size;
  typename Thread::template array<typename Thread::lane_mask, kWarps * kBins> mask;
  typename Thread::template array<uint16_t, kWarps * kBins> count;  // a tile has at most 2^15 pairs

  TY_DEVICE void clear(Thread& gpu, int bins) {
    const int base = gpu.warp() * kBins;
    for (int bin = gpu.lane(); bin < bins; bin += Thread::warp_size) {
      mask(base + bin) = 0;
      count(base + bin) = 0;
    }
    gpu.sync_warp();
  }

  // The rank of this lane's pair among the warp's pairs of the same bin since `clear`. bin < 0: no pair.
  TY_DEVICE int32_t rank_row(Thread& gpu, int bin) {
    const int cell = gpu.warp() * kBins + bin;
    if (bin >= 0) gpu.or_bits(mask(cell), typename Thread::lane_mask{1} << gpu.lane());
    gpu.sync_warp();
    int32_t rank = 0;
    typename Thread::lane_mask row = 0;
    if (bin >= 0) {
      row = mask(cell);
      rank = count(cell) + gpu.popcount(row & gpu.lanes_below());
    }
    gpu.sync_warp();
    if (bin >= 0 && (row & gpu.lanes_below()) == 0) {  // first of its bin: carry to the next row
      count(cell) = static_cast<uint16_t>(rank + gpu.popcount(row));
      mask(cell) = 0;
    }
    gpu.sync_warp();
    return rank;
  }
};

}  // namespace tokenyard::align
