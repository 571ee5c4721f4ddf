// align in one cooperative launch whose blocks take as many tiles as they must: for any number of pairs and
// of experts. Also, cut in two at the exchange, in two launches.
//
// The data flow of kernel_tile.hpp, which does it faster where a tile is enough. A chunk of several tiles is
// read twice: once to count, once to place.
//
// The same kernel in two stages, kCount and kPlace, needs no residency: the boundary between the launches
// does the waiting.
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
template <class Ids, int kThreads, int kItems, int kPasses, int kCluster, Stage kStage>
struct Grid {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kStage == Stage::kWhole;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kExperts = kPasses == 1 ? 256 : kMaxExperts;
  static_assert(kStage == Stage::kWhole || kCluster == 1);
  static constexpr bool kRunsShared = kPasses == 1;

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
    // Each expert's run, for whichever warp writes its pads, where that fits: pairs, first block, blocks.
    typename Thread::template array<int32_t, kRunsShared ? 3 * kExperts : 1> runs;
    typename Thread::template array<uint64_t, 1> tag;

    TY_DEVICE auto& cursors() {
      if constexpr (kCluster == 1) {
        return histogram;
      } else {
        return separate_cursor;
      }
    }
  };

  int32_t chunk;  // pairs of each block
  FastDivide blocks;
  Ids ids;
  Exchange<> exchange;
  Outputs<true> out;

  Grid(int32_t chunk, int32_t blocks, Workspace workspace, const Problem& problem)
      : chunk(chunk),
        blocks(blocks),
        ids(problem),
        exchange(workspace, blocks / kCluster, exchange_columns(problem.num_local_experts)),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const Range range = own_range(gpu);
    const bool one_tile = chunk <= kTile;

    int32_t expert[kItems];  // of the tile that was read last
    uint64_t epoch = 0;      // in thread 0
    gpu.await_previous();
    if constexpr (kStage != Stage::kPlace) {
      if (gpu.thread() == 0) epoch = exchange.epoch(gpu);
      count_chunk(gpu, shared, range, expert);
      // Of two launches the second reads words of any tag, so theirs is one that no later launch waits for.
      if (gpu.thread() == 0) shared.tag(0) = exchange.tag(kStage == Stage::kWhole ? epoch : epoch - 1);
      publish(gpu, shared);
    }
    if constexpr (kStage != Stage::kCount) {
      Layout layout;
      Range tile = range;
      do {
        if (kStage == Stage::kPlace || !one_tile) {
          load_tile(gpu, tile, expert);
          shared.sort.prepare(gpu);
          ids.resolve(rows(tile), expert);
        }
        mark_dropped(gpu, tile, expert);
        const bool is_first = tile.first == range.first;
        Words<Thread> words;  // the other blocks' counts travel while this one sorts
        const int32_t pairs = shared.sort.sort(gpu, expert, offset(gpu, tile), rows(tile), [&] {
          if (is_first && gpu.thread() < exchange.columns()) exchange.request(gpu, 0, gpu.thread(), words);
        });
        if (is_first) layout = lay_out(gpu, shared, words);
        place(gpu, shared, tile.first, pairs, !one_tile);
      } while (next_tile(tile));
      gpu.let_next_begin();
      write_rest(gpu, shared, layout, epoch);
    }
    gpu.template wait_cluster<kCluster>();  // until the neighbours have read this block's histogram
  }

 private:
  static constexpr int kHolders = kThreads < kExperts ? kThreads : kExperts;  // threads that hold an expert
  // Fewer where waves are wide: AMD's compiler keeps the addresses, too.
  template <class Thread>
  using Words = Exchange<>::Words<Thread::warp_size == 32 ? 8 : 2>;
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

  // Moves on to the range's next tile, if there is one. Pairs may end just below 2^31.
  static TY_DEVICE bool next_tile(Range& range) {
    if (range.last - range.first <= kTile) return false;
    range.first += kTile;
    return true;
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
  TY_DEVICE void load_tile(Thread& gpu, Range range, int32_t (&expert)[kItems]) const {
    ids.template load<kItems>(range.first, offset(gpu, range), Thread::warp_size, end_of_warp(gpu, range),
                              rows(range), expert);
  }

  // Leaves the last tile's experts.
  template <class Thread, class S>
  TY_DEVICE void count_chunk(Thread& gpu, S& shared, Range tile, int32_t (&expert)[kItems]) const {
    load_tile(gpu, tile, expert);
    gpu.zero(shared.histogram, 0, (exchange.columns() + 3) / 4 * 4, gpu.thread(), kThreads);
    if constexpr (kStage == Stage::kWhole) shared.sort.prepare(gpu);
    gpu.sync_block();
    for (;;) {
      ids.resolve(rows(tile), expert);
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (k >= rows(tile)) break;
        if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
      }
      if (!next_tile(tile)) break;
      load_tile(gpu, tile, expert);
    }
  }

  // Adds up the cluster's histograms; each of its blocks publishes every kCluster-th expert, at least one
  // (there are as many columns as blocks in a cluster). Leaves in the cursors what the cluster's blocks
  // before this one hold.
  template <class Thread, class S>
  TY_DEVICE void publish(Thread& gpu, S& shared) const {
    gpu.template sync_cluster<kCluster>();
    const uint64_t tag = shared.tag(0);
    const int rank = gpu.template cluster_rank<kCluster>();
    for (int32_t e = gpu.thread(); e < exchange.columns(); e += kThreads) {
      int32_t total = 0;
      if constexpr (kCluster == 1) {
        total = static_cast<int32_t>(shared.histogram(e));
      } else {
        int32_t before = 0;
#pragma unroll
        for (int r = 0; r < kCluster; ++r) {
          const auto pairs = static_cast<int32_t>(gpu.template remote<kCluster>(shared, r).histogram(e));
          total += pairs;
          if (r < rank) before += pairs;
        }
        shared.cursors()(e) = static_cast<uint32_t>(before);
      }
      exchange.publish(gpu, tag, gpu.template cluster<kCluster>(), e, total, e % kCluster == rank);
    }
    gpu.template arrive_cluster<kCluster>();
  }

  template <class Thread>
  TY_DEVICE void mark_dropped(Thread& gpu, Range tile, const int32_t (&expert)[kItems]) const {
    if (!out.wants_inverse()) return;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows(tile)) break;
      const int32_t at = offset(gpu, tile) + k * Thread::warp_size;
      if (expert[k] < 0 && at < end_of_warp(gpu, tile)) out.write_dropped_pair(tile.first + at);
    }
  }

  struct Layout {
    Run run;  // of the last stripe, one per thread
    int32_t used_blocks;
    int32_t valid_pairs;  // in block 0, if wanted
  };

  // From the counts of all to this block's cursors. Experts are taken in stripes of one per thread; what
  // the last stripe has to write beside the cursors is left for later.
  template <class Thread, class S>
  TY_DEVICE Layout lay_out(Thread& gpu, S& shared, Words<Thread>& words) const {
    const uint64_t tag = kStage == Stage::kWhole ? static_cast<uint64_t>(shared.tag(0)) : 0;
    Layout layout{{0, 0, 0, 0}, 0, 0};
    for (int32_t stripe = 0; stripe < exchange.columns(); stripe += kThreads) {
      Run run{stripe + gpu.thread(), 0, 0, 0};
      if (stripe > 0) {
        write_runs(gpu, layout.run);
        if (run.expert < exchange.columns()) exchange.request(gpu, 0, run.expert, words);
      }
      int32_t before = 0;
      if (run.expert < exchange.columns()) {
        if constexpr (kCluster > 1) before = static_cast<int32_t>(shared.cursors()(run.expert));
        gather(gpu, tag, run.expert, words, before, run.pairs);
      }
      run.blocks = out.block.ceil(run.pairs);
      const port::ScanResult scan =
          port::block_exclusive_sum<kThreads, kHolders>(gpu, run.blocks, shared.partial);
      run.first_block = layout.used_blocks + scan.before;
      layout.used_blocks += scan.total;
      if (run.expert < out.experts) {
        shared.cursors()(run.expert) = static_cast<uint32_t>(run.first_block * out.block.divisor() + before);
        if constexpr (kRunsShared) {
          shared.runs(3 * run.expert) = run.pairs;
          shared.runs(3 * run.expert + 1) = run.first_block;
          shared.runs(3 * run.expert + 2) = run.blocks;
        }
      }
      gpu.sync_block();
      if (out.wants_dropped() && gpu.block() == 0) {
        layout.valid_pairs +=
            port::block_exclusive_sum<kThreads, kHolders>(gpu, run.pairs, shared.partial_valid).total;
      }
      layout.run = run;
    }
    return layout;
  }

  template <class Thread>
  TY_DEVICE void gather(Thread& gpu, uint64_t tag, int32_t column, Words<Thread>& words, int32_t& before,
                        int32_t& total) const {
    constexpr int kAtOnce = Words<Thread>::kCount;
#pragma unroll 1
    for (int32_t first = 0; first < exchange.rows(); first += kAtOnce) {
      if (first > 0) exchange.request(gpu, first, column, words);
      exchange.template gather<kStage == Stage::kWhole>(gpu, tag, first, gpu.template cluster<kCluster>(),
                                                        column, words, before, total);
    }
  }

  // Everything that is not a pair. The warps that hold no expert have had less to do so far.
  template <class Thread, class S>
  TY_DEVICE void write_rest(Thread& gpu, S& shared, const Layout& layout, uint64_t epoch) const {
    constexpr int kFirst = kHolders < kThreads ? kHolders : 0;  // threads that have had more to do so far
    if (layout.run.expert - gpu.lane() < out.experts) write_runs(gpu, layout.run);
    if (kRunsShared && gpu.thread() >= kFirst) {
      constexpr int kStep = (kThreads - kFirst) / Thread::warp_size;
      for (int32_t e = gpu.block() + gpu.blocks() * (gpu.warp() - kFirst / Thread::warp_size);
           e < out.experts; e += gpu.blocks() * kStep) {
        const Run run{e, shared.runs(3 * e), shared.runs(3 * e + 1), shared.runs(3 * e + 2)};
        out.write_pads(gpu, run);
        if (run.blocks <= kShareBlocks) out.write_blocks(run, gpu.lane(), Thread::warp_size);
      }
    }
    out.template write_tail<kThreads>(gpu, layout.used_blocks);
    if (gpu.block() == 0 && gpu.thread() == 0) {
      if (out.wants_dropped()) out.write_dropped(layout.valid_pairs);
      if constexpr (kStage == Stage::kWhole) exchange.advance(gpu, epoch);
    }
  }

  // What the holders of runs have to see to, one run a lane: counts and offsets; long lists of blocks, which
  // all blocks of the grid share; and, unless other warps do it, the pads and short lists of the runs that
  // this block owns. Experts beyond the last have no pairs.
  template <class Thread>
  TY_DEVICE void write_runs(Thread& gpu, const Run& mine) const {
    if (gpu.block() == 0 && mine.expert < out.experts) out.write_expert(mine);
    const bool owned = !kRunsShared && owner(mine.expert) == gpu.block();
    auto todo = gpu.ballot(mine.blocks > 0 && (owned || mine.blocks > kShareBlocks));
    while (todo != 0) {
      const int lane = gpu.lowest(todo);
      todo &= todo - 1;
      const Run run{gpu.shfl(mine.expert, lane), gpu.shfl(mine.pairs, lane), gpu.shfl(mine.first_block, lane),
                    gpu.shfl(mine.blocks, lane)};
      const bool own = !kRunsShared && owner(run.expert) == gpu.block();
      if (own) out.write_pads(gpu, run);
      if (run.blocks > kShareBlocks) {
        out.write_blocks(run, gpu.block() * Thread::warp_size + gpu.lane(), gpu.blocks() * Thread::warp_size);
      } else if (own) {
        out.write_blocks(run, gpu.lane(), Thread::warp_size);
      }
    }
  }
  TY_DEVICE int32_t owner(int32_t expert) const { return expert - blocks.floor(expert) * blocks.divisor(); }

  // Copies the sorted tile out. A run's cursor, less the run's place in the tile, gives each pair its slot.
  template <class Thread, class S>
  TY_DEVICE void place(Thread& gpu, S& shared, int32_t first, int32_t pairs, bool more_tiles) const {
    using Sort = decltype(shared.sort);
    auto& cursors = shared.cursors();
    uint32_t item[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) break;
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
      if (at >= pairs) break;
      const int32_t slot =
          static_cast<int32_t>(cursors(Sort::expert_of(item[k])) + static_cast<uint32_t>(at));
      out.write_pair(slot, first + Sort::index_of(item[k]));
    }
    if (!more_tiles) return;
    gpu.sync_block();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) break;
      const int32_t expert = Sort::expert_of(item[k]);
      if (at == pairs - 1 || Sort::expert_of(shared.sort.pair(at + 1)) != expert) {
        cursors(expert) = cursors(expert) + static_cast<uint32_t>(at + 1);
      }
    }
    gpu.sync_block();
  }
};

}  // namespace tokenyard::align
