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
// branches. The tables of a block lie side by side; only warp number `warp` itself touches its own
// between `clear` and the block's next barrier.
template <class Thread, int kThreads, int kBins>
struct RankTables {
  static constexpr int kWarps = kThreads / Thread::warp_size;
  static constexpr int kRow = kBins + Thread::warp_size;

  typename Thread::template array<typename Thread::lane_mask, kWarps * kRow> mask;
  typename Thread::template array<uint16_t, kWarps * kRow> counts;

  TY_DEVICE void clear(Thread& gpu, int warp) {
    gpu.template zero<kRow, Thread::warp_size>(mask, warp * kRow, gpu.lane());
    gpu.template zero<kRow, Thread::warp_size>(counts, warp * kRow, gpu.lane());
    gpu.sync_warp();
  }

  // Where a lane without a pair goes.
  static TY_DEVICE int spare_bin(Thread& gpu) { return kBins + gpu.lane(); }

  // The rank of this lane's pair among the warp's pairs of the same bin since `clear`.
  // `first`: no row came before; `more`: another row follows. Both the same in all lanes.
  TY_DEVICE int32_t rank_row(Thread& gpu, int warp, int bin, bool first, bool more) {
    const int cell = warp * kRow + bin;
    gpu.or_bits(mask(cell), typename Thread::lane_mask{1} << gpu.lane());
    const int32_t carried = first ? 0 : static_cast<int32_t>(counts(cell));
    gpu.sync_warp();
    const typename Thread::lane_mask row = mask(cell);
    const int before = gpu.popcount(row & gpu.lanes_below());
    gpu.sync_warp();
    if (before == 0) {  // first of its bin: carry to the next row
      if (more) mask(cell) = 0;
      counts(cell) = static_cast<uint16_t>(carried + gpu.popcount(row));
    }
    if (more) gpu.sync_warp();
    return carried + before;
  }

  // Turns a bin's counts of all warps into how many pairs come before them, beginning with `before`. Returns
  // how many come before the end.
  TY_DEVICE int32_t prefix(int bin, int32_t before) {
    constexpr int kAtOnce = kWarps < 8 ? kWarps : 8;  // loads first: a store would hold them up
    static_assert(kWarps % kAtOnce == 0);
#pragma unroll 1
    for (int first = 0; first < kWarps; first += kAtOnce) {
      int32_t some[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) some[i] = count(first + i, bin);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        count(first + i, bin) = static_cast<uint16_t>(before);
        before += some[i];
      }
    }
    return before;
  }

  TY_DEVICE decltype(auto) count(int warp, int bin) { return counts(warp * kRow + bin); }
};

}  // namespace tokenyard::align
