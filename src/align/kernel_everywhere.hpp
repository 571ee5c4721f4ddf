// align in one launch without any exchange between blocks: for small batches.
//
//   ids ──every block reads all──> histogram[E] in its own shared memory
//                                    │ sum of the padded lengths below the block's experts, and of all
//                                    v
//   block b owns experts [b * owned, (b + 1) * owned): ranks their pairs, writes their runs;
//   pads and the tail up to the capacity are spread over warps and blocks.
//
// One trip to memory for the ids, three block barriers, one trip for the stores. Ids that do not fit in the
// block's registers are read in tiles (kManyTiles), twice.
#pragma once

#include <cstdint>

#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "align/kernel_rank.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Ids, int kThreads, int kItems, bool kManyTiles>
struct Everywhere {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kMaxOwned = 32;  // experts of a block; no more than lanes in a warp

  template <class Thread>
  struct Shared {
    typename Thread::template array<uint32_t, kMaxExperts> histogram;
    RankTables<Thread, kThreads, kMaxOwned> ranks;
    typename Thread::template array<int32_t, 2 * (kThreads / Thread::warp_size)> partial;
  };

  int32_t owned;  // experts of each block, 1 to kMaxOwned
  Ids ids;
  Outputs out;

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const int32_t first = gpu.block() * owned;
    const int32_t mine = port::min_of(owned, out.experts - first);
    const int32_t pairs = out.num_pairs;

    int32_t expert[kItems];
    int32_t rank[kItems];
    load_tile(gpu, 0, expert);
    gpu.zero(shared.histogram, 0, (out.experts + 3) / 4 * 4, gpu.thread(), kThreads);
    shared.ranks.clear(gpu);
    gpu.sync_block();

    ids.resolve(items(0), expert);
    count(gpu, shared, 0, expert);
    for (int32_t tile = 0; kManyTiles && pairs - tile > kTile;) {  // pairs may end just below 2^31
      tile += kTile;
      int32_t more[kItems];
      load_tile(gpu, tile, more);
      ids.resolve(items(tile), more);
      count(gpu, shared, tile, more);
    }
    rank_own(gpu, shared, 0, first, mine, expert, rank);
    gpu.sync_block();

    const Layout layout = lay_out(gpu, shared, first, mine);
    int32_t next = layout.run.first_block * out.block.divisor();  // lane i: where own expert i goes on
    place(gpu, shared, 0, mine, expert, rank, next);
    for (int32_t tile = 0; kManyTiles && pairs - tile > kTile;) {
      tile += kTile;
      next = skip_tile(gpu, shared, mine, next);
      load_tile(gpu, tile, expert);
      ids.resolve(items(tile), expert);
      rank_own(gpu, shared, tile, first, mine, expert, rank);
      gpu.sync_block();
      place(gpu, shared, tile, mine, expert, rank, next);
    }

    for (int i = gpu.warp(); i < mine; i += warps<Thread>()) {
      const Run run{first + i, gpu.shfl(layout.run.pairs, i), gpu.shfl(layout.run.first_block, i),
                    gpu.shfl(layout.run.blocks, i)};
      if (gpu.lane() == 0) out.write_expert(run);
      out.write_pads(gpu, run);
      out.write_blocks(run, gpu.lane(), Thread::warp_size);
    }
    const int busy = owned * 2 <= warps<Thread>() ? owned * Thread::warp_size : 0;
    out.template write_tail<kThreads>(gpu, layout.used_blocks, busy);
    if (out.wants_dropped() && gpu.block() == 0 && gpu.warp() == 0) write_dropped(gpu, shared);
  }

 private:
  template <class Thread>
  static constexpr int warps() {
    return kThreads / Thread::warp_size;
  }

  struct Layout {
    Run run;  // of own expert number lane()
    int32_t used_blocks;
  };

  // A tile's pairs go to warps in contiguous ranges of rows, so that (warp, row, lane) is their order.
  TY_DEVICE int32_t rows(int32_t tile) const {
    const int32_t left = port::min_of(out.num_pairs - tile, kTile);
    return (left + kThreads - 1) / kThreads;
  }
  // Items of a thread that are worth a look; where they are few, all of them.
  TY_DEVICE int32_t items(int32_t tile) const { return kManyTiles ? rows(tile) : kItems; }
  template <class Thread>
  TY_DEVICE int32_t offset(Thread& gpu, int32_t tile) const {
    return gpu.warp() * rows(tile) * Thread::warp_size + gpu.lane();
  }

  template <class Thread>
  TY_DEVICE int32_t end_of_warp(Thread& gpu, int32_t tile) const {
    return port::min_of((gpu.warp() + 1) * rows(tile) * Thread::warp_size, out.num_pairs - tile);
  }

  template <class Thread>
  TY_DEVICE void load_tile(Thread& gpu, int32_t tile, int32_t (&expert)[kItems]) const {
    ids.template load<kItems>(tile, offset(gpu, tile), Thread::warp_size, end_of_warp(gpu, tile), items(tile),
                              expert);
  }

  template <class Thread, class S>
  TY_DEVICE void count(Thread& gpu, S& shared, int32_t tile, const int32_t (&expert)[kItems]) const {
    const int32_t last = items(tile);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= last) break;
      if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
    }
    if (out.inverse == nullptr || gpu.block() != 0) return;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {  // dropped pairs belong to no block: the first one marks them
      if (k >= last) break;
      const int32_t at = offset(gpu, tile) + k * Thread::warp_size;
      if (expert[k] < 0 && at < end_of_warp(gpu, tile)) out.inverse[tile + at] = -1;
    }
  }

  // Own experts become bins 0 .. mine-1, all others -1.
  template <class Thread, class S>
  TY_DEVICE void rank_own(Thread& gpu, S& shared, int32_t tile, int32_t first, int32_t mine,
                          int32_t (&expert)[kItems], int32_t (&rank)[kItems]) const {
    const int32_t last = items(tile);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= last) break;
      const int32_t bin = expert[k] - first;
      expert[k] = expert[k] >= 0 && bin >= 0 && bin < mine ? bin : -1;
      if (gpu.any(expert[k] >= 0)) {
        rank[k] = shared.ranks.rank_row(gpu, expert[k] >= 0 ? expert[k] : shared.ranks.spare_bin(gpu), true);
      }
    }
  }

  template <class Thread, class S>
  TY_DEVICE Layout lay_out(Thread& gpu, S& shared, int32_t first, int32_t mine) const {
    int32_t below = 0;
    int32_t used = 0;
    for (int32_t e = gpu.thread(); e < out.experts; e += kThreads) {
      const int32_t blocks = out.block.ceil(static_cast<int32_t>(shared.histogram(e)));
      used += blocks;
      if (e < first) below += blocks;
    }
    below = gpu.reduce_add(below);
    used = gpu.reduce_add(used);
    if (gpu.lane() == 0) {
      shared.partial(2 * gpu.warp()) = below;
      shared.partial(2 * gpu.warp() + 1) = used;
    }
    gpu.sync_block();
    const bool has = gpu.lane() < warps<Thread>();
    below = gpu.reduce_add(has ? static_cast<int32_t>(shared.partial(2 * gpu.lane())) : 0);
    used = gpu.reduce_add(has ? static_cast<int32_t>(shared.partial(2 * gpu.lane() + 1)) : 0);

    const int32_t own = gpu.lane() < mine ? static_cast<int32_t>(shared.histogram(first + gpu.lane())) : 0;
    const int32_t blocks = out.block.ceil(own);
    int32_t through = blocks;
    for (int delta = 1; delta < owned; delta *= 2) {
      const int32_t below_lane = gpu.shfl_up(through, delta);
      if (gpu.lane() >= delta) through += below_lane;
    }
    return {{first + gpu.lane(), own, below + through - blocks, blocks}, used};
  }

  // Pairs of own expert number lane() in the tile's warps before `warp`.
  template <class Thread, class S>
  TY_DEVICE int32_t pairs_before(Thread& gpu, S& shared, int32_t mine, int warp) const {
    int32_t sum = 0;
    if (gpu.lane() < mine) {
#pragma unroll 4
      for (int w = 0; w < warp; ++w) sum += shared.ranks.count_of(w, gpu.lane());
    }
    return sum;
  }

  template <class Thread, class S>
  TY_DEVICE void place(Thread& gpu, S& shared, int32_t tile, int32_t mine, const int32_t (&bin)[kItems],
                       const int32_t (&rank)[kItems], int32_t next) const {
    const int32_t last = items(tile);
    bool any_own = false;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= last) break;
      any_own = any_own || bin[k] >= 0;
    }
    if (!gpu.any(any_own)) return;
    const int32_t begin = next + pairs_before(gpu, shared, mine, gpu.warp());
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= last) break;
      const int32_t slot = gpu.shfl(begin, bin[k] >= 0 ? bin[k] : 0) + rank[k];
      const int32_t pair = tile + offset(gpu, tile) + k * Thread::warp_size;
      if (bin[k] >= 0) {
        out.sorted_pair_ids[slot] = pair;
        if (out.inverse != nullptr) out.inverse[pair] = slot;
      }
    }
  }

  template <class Thread, class S>
  TY_DEVICE void write_dropped(Thread& gpu, S& shared) const {
    int32_t valid = 0;
    for (int32_t e = gpu.lane(); e < out.experts; e += Thread::warp_size) {
      valid += static_cast<int32_t>(shared.histogram(e));
    }
    valid = gpu.reduce_add(valid);
    if (gpu.lane() == 0) out.write_dropped(valid);
  }

  // Moves on by the tile's pairs and clears the tables for the next one.
  template <class Thread, class S>
  TY_DEVICE int32_t skip_tile(Thread& gpu, S& shared, int32_t mine, int32_t next) const {
    next += pairs_before(gpu, shared, mine, warps<Thread>());
    gpu.sync_block();
    shared.ranks.clear(gpu);
    return next;
  }
};

}  // namespace tokenyard::align
