// align in one cooperative launch: for large batches. Also, cut in two at the exchange, in two launches.
//
//   ids ─> each block histograms its chunk ─> a cluster adds up its blocks' histograms
//                        │                                   │ one row of tagged counts (exchange.hpp)
//                        v                                   v
//          sorts its tile in shared memory        everyone reads every row: where each expert's run
//          while the rows travel                  begins, and where this block's part of it does
//                        └───────────────┬───────────────────┘
//                                        v
//                     copies its sorted pairs out, run by run, coalesced
//
// One trip to memory for the ids, one for the counts, one for the stores; no grid barrier, no global
// atomic. A chunk of several tiles is read twice: once to count, once to place.
//
// Blocks that wait for others must all be resident, so the launch is cooperative. The same kernel in two
// stages, kCount and kPlace, needs no residency: the boundary between the launches does the waiting.
#pragma once

#include <cstdint>

#include "align/exchange.hpp"
#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "align/kernel_sort.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

enum class Stage { kWhole, kCount, kPlace };

// Up to 256 experts sort in one pass (kPasses), up to 4096 in two.
template <int kThreads, int kItems, int kPasses, int kCluster, Stage kStage>
struct Grid {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kStage == Stage::kWhole;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kExperts = kPasses == 1 ? 256 : kMaxExperts;
  static_assert(kStage == Stage::kWhole || kCluster == 1);

  template <class Thread>
  struct Shared {
    // Pairs of each expert in the chunk; read by the cluster's other blocks.
    typename Thread::template array<uint32_t, kExperts> histogram;
    // Where this block's next pair of each expert goes. Nobody else reads histogram where there is no
    // cluster, so there the two are one.
    typename Thread::template array<uint32_t, kCluster == 1 ? 1 : kExperts> separate_cursor;
    TileSort<Thread, kThreads, kItems, kPasses> sort;
    typename Thread::template array<int32_t, kThreads / Thread::warp_size> partial;
    typename Thread::template array<int32_t, kThreads / Thread::warp_size> partial_valid;

    TY_DEVICE auto& cursors() {
      if constexpr (kCluster == 1) {
        return histogram;
      } else {
        return separate_cursor;
      }
    }
  };

  Ids ids;
  Outputs out;
  Exchange exchange;
  int32_t chunk;  // pairs of each block

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const Range range = own_range(gpu);
    const bool one_tile = chunk <= kTile;

    int32_t expert[kItems];
    uint64_t tag = 0;
    if (one_tile || kStage != Stage::kPlace) read_tile(gpu, range, expert);
    if constexpr (kStage != Stage::kPlace) {
      tag = exchange.tag(gpu);
      count_chunk(gpu, shared, range, expert);
      publish(gpu, shared, tag);
    }
    if constexpr (kStage != Stage::kCount) {
      int32_t pairs = one_tile ? sort(gpu, shared, range, expert) : 0;
      lay_out(gpu, shared, tag);
      for (Range tile = range; tile.first < tile.last; tile.first += kTile) {
        if (!one_tile) {
          read_tile(gpu, tile, expert);
          pairs = sort(gpu, shared, tile, expert);
        }
        place(gpu, shared, tile.first, pairs, !one_tile);
      }
    }
    gpu.template wait_cluster<kCluster>();  // the neighbours have read this block's histogram
  }

 private:
  static constexpr int32_t kShareBlocks = 64;  // a run of more blocks is described by all thread blocks

  struct Range {  // of pairs
    int32_t first, last;
  };

  template <class Thread>
  TY_DEVICE Range own_range(Thread& gpu) const {
    const int64_t first = static_cast<int64_t>(gpu.block()) * chunk;
    const int64_t pairs = out.num_pairs;
    return {static_cast<int32_t>(port::min_of(first, pairs)),
            static_cast<int32_t>(port::min_of(first + chunk, pairs))};
  }

  // A tile begins at range.first. Its pairs go to warps in contiguous ranges of rows, so that (warp, row,
  // lane) is their order.
  static TY_DEVICE int32_t rows(Range range) {
    return (port::min_of(range.last - range.first, kTile) + kThreads - 1) / kThreads;
  }
  template <class Thread>
  TY_DEVICE int32_t offset(Thread& gpu, Range range) const {
    return gpu.warp() * rows(range) * Thread::warp_size + gpu.lane();
  }
  template <class Thread>
  TY_DEVICE int32_t end_of_warp(Thread& gpu, Range range) const {
    return port::min_of((gpu.warp() + 1) * rows(range) * Thread::warp_size, range.last - range.first);
  }

  template <class Thread>
  TY_DEVICE void read_tile(Thread& gpu, Range range, int32_t (&expert)[kItems]) const {
    ids.template read<kItems>(range.first, offset(gpu, range), Thread::warp_size, end_of_warp(gpu, range),
                              expert);
  }

  // `expert` holds the chunk's first tile; the others are read here.
  template <class Thread, class S>
  TY_DEVICE void count_chunk(Thread& gpu, S& shared, Range range, const int32_t (&expert)[kItems]) const {
    for (int32_t e = gpu.thread(); e < exchange.columns(); e += kThreads) shared.histogram(e) = 0;
    gpu.sync_block();
    count_tile(gpu, shared, expert);
    for (range.first += kTile; range.first < range.last; range.first += kTile) {
      int32_t more[kItems];
      read_tile(gpu, range, more);
      count_tile(gpu, shared, more);
    }
    gpu.sync_block();
  }

  template <class Thread, class S>
  TY_DEVICE void count_tile(Thread& gpu, S& shared, const int32_t (&expert)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
    }
  }

  // Adds up the cluster's histograms; each of its blocks publishes every kCluster-th expert, at least one
  // (there are as many columns as blocks in a cluster). Leaves in the cursors what the cluster's blocks
  // before this one hold.
  template <class Thread, class S>
  TY_DEVICE void publish(Thread& gpu, S& shared, uint64_t tag) const {
    constexpr int kStripes = (kExperts + kThreads - 1) / kThreads;
    const int rank = gpu.template cluster_rank<kCluster>();
    int32_t total[kStripes];
    gpu.template sync_cluster<kCluster>();
#pragma unroll
    for (int stripe = 0; stripe < kStripes; ++stripe) {
      const int32_t e = stripe * kThreads + gpu.thread();
      total[stripe] = 0;
      if (e >= exchange.columns()) continue;
      if constexpr (kCluster == 1) {
        total[stripe] = static_cast<int32_t>(shared.histogram(e));
      } else {
        int32_t before = 0;
#pragma unroll
        for (int r = 0; r < kCluster; ++r) {
          const auto pairs =
              static_cast<int32_t>(gpu.template remote<kCluster>(shared, r).histogram(e));
          total[stripe] += pairs;
          if (r < rank) before += pairs;
        }
        shared.cursors()(e) = static_cast<uint32_t>(before);
      }
    }
    gpu.template arrive_cluster<kCluster>();
#pragma unroll
    for (int stripe = 0; stripe < kStripes; ++stripe) {
      const int32_t e = stripe * kThreads + gpu.thread();
      if (e < exchange.columns() && e % kCluster == rank) {
        exchange.publish(gpu, tag, gpu.template cluster<kCluster>(), e, total[stripe]);
      }
    }
  }

  template <class Thread, class S>
  TY_DEVICE int32_t sort(Thread& gpu, S& shared, Range range, const int32_t (&expert)[kItems]) const {
    if (out.inverse != nullptr) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int32_t at = offset(gpu, range) + k * Thread::warp_size;
        if (expert[k] < 0 && at < end_of_warp(gpu, range)) out.inverse[range.first + at] = -1;
      }
    }
    return shared.sort.sort(gpu, expert, offset(gpu, range));
  }

  // From the counts of all to this block's cursors, and everything that is not a pair.
  template <class Thread, class S>
  TY_DEVICE void lay_out(Thread& gpu, S& shared, uint64_t tag) const {
    int32_t used_blocks = 0;
    int32_t valid_pairs = 0;
    for (int32_t stripe = 0; stripe < exchange.columns(); stripe += kThreads) {
      Run run{stripe + gpu.thread(), 0, 0, 0};
      int32_t before = 0;
      if (run.expert < exchange.columns()) {
        if constexpr (kCluster > 1) before = static_cast<int32_t>(shared.cursors()(run.expert));
        exchange.template gather<kStage == Stage::kWhole>(gpu, tag, gpu.template cluster<kCluster>(), run.expert,
                                                          before, run.pairs);
      }
      run.blocks = out.block.ceil(run.pairs);
      const port::ScanResult scan = port::block_exclusive_sum<kThreads>(gpu, run.blocks, shared.partial);
      run.first_block = used_blocks + scan.before;
      used_blocks += scan.total;
      if (run.expert < out.experts) {
        shared.cursors()(run.expert) = static_cast<uint32_t>(run.first_block * out.block.divisor() + before);
        if (gpu.block() == 0) out.write_expert(run);
      }
      if (gpu.block() == 0 && out.wants_dropped()) {
        valid_pairs += port::block_exclusive_sum<kThreads>(gpu, run.pairs, shared.partial_valid).total;
      }
      write_runs(gpu, run);
      gpu.sync_block();
    }
    out.write_tail(gpu, used_blocks);
    if (gpu.block() == 0 && gpu.thread() == 0) {
      if (out.wants_dropped()) out.write_dropped(valid_pairs);
      exchange.advance(gpu, kStage == Stage::kWhole ? tag : exchange.tag(gpu));
    }
  }

  // Each lane brings a run. Pads go to one block of the grid per run, long lists of blocks to all.
  template <class Thread>
  TY_DEVICE void write_runs(Thread& gpu, const Run& mine) const {
    const bool owned = mine.expert % gpu.blocks() == gpu.block();
    auto todo = gpu.ballot(mine.blocks > 0 && (owned || mine.blocks > kShareBlocks));
    while (todo != 0) {
      const int lane = gpu.lowest(todo);
      todo &= todo - 1;
      const Run run{gpu.shfl(mine.expert, lane), gpu.shfl(mine.pairs, lane), gpu.shfl(mine.first_block, lane),
                    gpu.shfl(mine.blocks, lane)};
      const bool own = run.expert % gpu.blocks() == gpu.block();
      if (own) out.write_pads(gpu, run);
      if (run.blocks > kShareBlocks) {
        out.write_blocks(run, gpu.block() * Thread::warp_size + gpu.lane(), gpu.blocks() * Thread::warp_size);
      } else if (own) {
        out.write_blocks(run, gpu.lane(), Thread::warp_size);
      }
    }
  }

  // Copies the sorted tile out. A run's cursor, less the run's place in the tile, gives each pair its slot.
  template <class Thread, class S>
  TY_DEVICE void place(Thread& gpu, S& shared, int32_t first, int32_t pairs, bool more_tiles) const {
    using Sort = decltype(shared.sort);
    auto& cursors = shared.cursors();
    uint32_t item[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) continue;
      item[k] = shared.sort.pair(at);
      const int32_t expert = Sort::expert_of(item[k]);
      if (at == 0 || Sort::expert_of(shared.sort.pair(at - 1)) != expert) {
        cursors(expert) = cursors(expert) - static_cast<uint32_t>(at);
      }
    }
    gpu.sync_block();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) continue;
      const int32_t slot =
          static_cast<int32_t>(cursors(Sort::expert_of(item[k])) + static_cast<uint32_t>(at));
      const int32_t pair = first + Sort::index_of(item[k]);
      out.sorted_pair_ids[slot] = pair;
      if (out.inverse != nullptr) out.inverse[pair] = slot;
    }
    if (!more_tiles) return;
    gpu.sync_block();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) continue;
      const int32_t expert = Sort::expert_of(item[k]);
      if (at == pairs - 1 || Sort::expert_of(shared.sort.pair(at + 1)) != expert) {
        cursors(expert) = cursors(expert) + static_cast<uint32_t>(at + 1);
      }
    }
    gpu.sync_block();
  }
};

}  // namespace tokenyard::align
