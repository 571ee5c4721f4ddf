// Ranks inside a warp: how many earlier pairs of the warp fall into the same bin.
//
// A row is one pair per lane. Each lane ORs its bit into the bin's mask; the bits below its own are the
// pairs before it in the row; a running count per bin carries the rows before. Unlike a ballot per bit of the
// bin, this takes the same few instructions however many bins there are.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

// One warp's tables, of kBins bins and a spare bin for each lane, where lanes without a pair go: no lane
// branches. Code that runs once a launch must be fetched first, which can cost more than what it does: short
// straight code wins. The tables of a block lie side by side; only warp number `warp` itself touches its own
// between `clear` and the block's next barrier.
template <class Thread, int kThreads, int kBins>
struct RankTables {
  static constexpr int kWarps = kThreads / Thread::warp_size;
  static constexpr int kRow = kBins + Thread::warp_size;
  static constexpr int kCountRow = kRow / 2;  // two counts in a word, the even bin's in the lower half

  typename Thread::template array<typename Thread::lane_mask, kWarps * kRow> mask;
  typename Thread::template array<uint32_t, kWarps * kCountRow> counts;

  TY_DEVICE void clear(Thread& gpu, int warp) {
    gpu.template zero<kRow, Thread::warp_size>(mask, warp * kRow, gpu.lane());
    gpu.template zero<kCountRow, Thread::warp_size>(counts, warp * kCountRow, gpu.lane());
    gpu.sync_warp();
  }

  // Where a lane without a pair goes.
  static TY_DEVICE int spare_bin(Thread& gpu) { return kBins + gpu.lane(); }

  // The rank of this lane's pair among the warp's pairs of the same bin since `clear`.
  // `first`: no row came before; `more`: another row follows. Both the same in all lanes.
  TY_DEVICE int32_t rank_row(Thread& gpu, int warp, int bin, bool first, bool more) {
    const int cell = warp * kRow + bin;
    gpu.or_bits(mask(cell), typename Thread::lane_mask{1} << gpu.lane());
    const int32_t carried = first ? 0 : count_of(warp, bin);
    gpu.sync_warp();
    const typename Thread::lane_mask row = mask(cell);
    const int before = gpu.popcount(row & gpu.lanes_below());
    gpu.sync_warp();
    if (before == 0) {  // first of its bin: carry to the next row
      if (more) mask(cell) = 0;
      gpu.add(counts(warp * kCountRow + (bin >> 1)), static_cast<uint32_t>(gpu.popcount(row))
                                                         << (bin & 1) * 16);
    }
    if (more) gpu.sync_warp();
    return carried + before;
  }

  TY_DEVICE int32_t count_of(int warp, int bin) {
    const uint32_t both = word(warp, bin >> 1);
    return static_cast<int32_t>((both >> (bin & 1) * 16) & 0xffff);
  }
  TY_DEVICE decltype(auto) word(int warp, int pair_of_bins) {
    return counts(warp * kCountRow + pair_of_bins);
  }
};

}  // namespace tokenyard::align
