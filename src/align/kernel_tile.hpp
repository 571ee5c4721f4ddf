// align in one cooperative launch whose blocks take one tile of the pairs each: for large batches.
//
//   ids ─> each block histograms its tile ─> a cluster's blocks send each other their histograms
//                        │                                   │ one row of tagged counts (exchange.hpp)
//                        v                                   v
//          sorts its tile in shared memory        everyone reads every row: where each expert's run
//          while the rows travel                  begins, and where this block's part of it does
//                        └───────────────┬───────────────────┘
//                                        v
//                     copies its sorted pairs out, run by run, coalesced
//
// One trip to memory for the ids, one for the counts, one for the stores; no grid barrier, no global
// atomic. Blocks that wait for others must all be resident, so the launch is cooperative.
//
// Two roles: the first warps hold an expert a lane and do the exchange, the others sort; all copy out.
// Ranking keeps the shared memory busy, and the exchange would wait behind it in the same warps. Where a
// block has no more threads than bins, its warps have both roles.
//
// How many rows the table has is known to the compiler: kRows clusters of kCluster blocks. More
// experts than a block can hold: kernel_wide.hpp. More pairs than tiles can: kernel_grid.hpp.
#pragma once

#include <cstdint>

#include "align/exchange.hpp"
#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "align/kernel_rank_tile.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "tuning/align.hpp"

namespace tokenyard::align {

template <class Ids, bool kOptional, int kThreads, int kSorters, int kItems, int kBins, int kCluster,
          int kRows>
struct Tile {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kRows > 1;
  static constexpr int kEach = 4;  // consecutive pairs of a lane
  static constexpr int kPasses = kItems / kEach;
  static constexpr int kTile = kSorters * kItems;
  static_assert(kBins <= kThreads && kSorters <= kThreads && kItems % kEach == 0 &&
                kCluster * kTile < 1 << 16);

  template <class Thread>
  static constexpr int kWarps = kThreads / Thread::warp_size;
  template <class Thread>
  static constexpr int kHolders = kBins / Thread::warp_size;  // warps that hold an expert a lane: the first
  template <class Thread>
  static constexpr int kSorterWarps = kSorters / Thread::warp_size;  // the last

  template <class Thread>
  struct Shared {
    typename Thread::template array<uint32_t, kBins> histogram;
    typename Thread::template array<uint32_t, kCluster == 1 ? 4 : kCluster * kBins> received;  // histograms
    TileRanks<Thread, kSorters, kBins, kPasses, kEach> ranks;
    typename Thread::template array<int32_t, kBins> start;    // of each expert in the sorted tile
    typename Thread::template array<uint32_t, kTile> sorted;  // experts above pairs' indices in the tile
    typename Thread::template array<int32_t, 1> length;       // of sorted
    typename Thread::template array<int32_t, kHolders<Thread>> blocks, valid;        // in each holder warp
    typename Thread::template array<int32_t, kBins> pairs, first_block, run_blocks;  // of each expert's run
    typename Thread::template array<int32_t, kBins> cursor;  // slot of the block's first pair of each expert
    typename Thread::template array<uint32_t, 1> long_runs;  // whether there are any
    typename Thread::template array<uint64_t, 1> tag;
    typename Thread::inbox inbox;
  };

  int32_t chunk;  // pairs of each block
  Ids ids;
  Exchange<kBins, 2> exchange;
  Outputs<kOptional> out;

  Tile(int32_t chunk, int32_t /*blocks*/, Workspace workspace, const Problem& problem)
      : chunk(chunk), ids(problem), exchange(workspace, kRows, kBins), out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const bool holder = gpu.warp() < kHolders<Thread>;
    const bool sorter = sorter_warp(gpu) >= 0;

    gpu.await_previous();
    int32_t expert[kPasses][kEach];
    if (sorter) load(gpu, expert);
    uint64_t epoch = 0;
    if (kRows > 1 && gpu.thread() == 0) epoch = exchange.epoch(gpu);
    if (gpu.thread() == 0) {
      gpu.template open_inbox<kCluster>(shared.inbox, kCluster * kBins * static_cast<int>(sizeof(uint32_t)));
      shared.long_runs(0) = 0;
    }
    gpu.template arrive_cluster<kCluster>();
    gpu.template zero<kBins, kThreads>(shared.histogram, 0, gpu.thread());
    if (sorter) shared.ranks.clear(gpu, sorter_warp(gpu));
    gpu.sync_block();

    if (sorter) count(gpu, shared, expert);
    if (gpu.thread() == 0) shared.tag(0) = exchange.tag(epoch);
    gpu.template wait_cluster<kCluster>();  // the neighbours' inboxes are open
    gpu.sync_block();

    const uint64_t tag = shared.tag(0);
    Run run{gpu.thread(), 0, 0, 0};  // of a holder
    int32_t before = 0;              // its pairs in blocks before this one
    Words<Thread> words;
    if (holder) {
      publish(gpu, shared, tag, before, run.pairs);
      if constexpr (kCluster == 1) gpu.delay();  // nothing has held the blocks up: too early to ask
      if constexpr (kRows > 1) exchange.template request<true>(gpu, 0, run.expert, words);
    }
    if (sorter) {
      if (gpu.warp() == kWarps<Thread> - 1) find_starts(gpu, shared);
      shared.ranks.rank(gpu, sorter_warp(gpu), passes(), out.experts, expert);
      sync_sorters(gpu);
      for (int e = gpu.thread() - (kThreads - kSorters); e < out.experts; e += kSorters) {
        shared.ranks.prefix(gpu, out.experts, e, shared.start(e));
      }
      sync_sorters(gpu);
      scatter(gpu, shared, expert);
    }
    if (holder) {
      if constexpr (kRows > 1) gather(gpu, tag, words, before, run.pairs);
      count_blocks(gpu, shared, run);
      gpu.template sync_warps<0, kHolders<Thread>, kWarps<Thread>>();
      describe_run(gpu, shared, run, before);
    }
    gpu.sync_block();

    gpu.let_next_begin();
    copy_out(gpu, shared);
    write_rest(gpu, shared, run, epoch);
  }

 private:
  static constexpr int32_t kLong = 1000;  // blocks of a run that a warp writes alone

  // Rows that are read at once; fewer where waves are wide: AMD's compiler keeps the addresses, too.
  template <class Thread>
  static constexpr int kInFlight = port::min_of(kRows, Thread::warp_size == 32 ? 16 : 2);
  template <class Thread>
  using Words = typename Exchange<kBins, 2>::template Words<kInFlight<Thread>>;

  template <class Thread>
  static TY_DEVICE int sorter_warp(Thread& gpu) {  // below 0: of another role
    return gpu.warp() - (kWarps<Thread> - kSorterWarps<Thread>);
  }
  template <class Thread>
  static TY_DEVICE void sync_sorters(Thread& gpu) {
    gpu.template sync_warps<kWarps<Thread> - kSorterWarps<Thread>, kSorterWarps<Thread>, kWarps<Thread>>();
  }
  // Pairs go to sorters' warps in contiguous ranges, so that (warp, pass, lane, item) is their order.
  TY_DEVICE int32_t passes() const {
    return kPasses == 1 ? 1 : (chunk + kSorters * kEach - 1) / (kSorters * kEach);
  }
  template <class Thread>
  TY_DEVICE int32_t offset(Thread& gpu, int pass) const {  // of a lane's first pair
    return ((sorter_warp(gpu) * passes() + pass) * Thread::warp_size + gpu.lane()) * kEach;
  }
  template <class Thread>
  TY_DEVICE int32_t length(Thread& gpu) const {  // pairs of this block; not above 0 beyond the last
    return port::min_of(chunk, out.num_pairs - gpu.block() * chunk);
  }

  template <class Thread>
  TY_DEVICE void load(Thread& gpu, int32_t (&expert)[kPasses][kEach]) const {
    const int32_t first = gpu.block() * chunk;
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes()) break;
      ids.load_run(gpu, first + offset(gpu, p), first + length(gpu), expert[p]);
    }
  }

  template <class Thread, class S>
  TY_DEVICE void count(Thread& gpu, S& shared, int32_t (&expert)[kPasses][kEach]) const {
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes()) break;
      ids.resolve(kEach, expert[p]);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] >= 0) gpu.add(shared.histogram(expert[p][i]), 1u);
      }
    }
    if (!out.wants_inverse()) return;
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes()) break;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int32_t at = offset(gpu, p) + i;
        if (expert[p][i] < 0 && at < length(gpu)) out.write_dropped_pair(gpu.block() * chunk + at);
      }
    }
  }

  // Adds up the cluster's histograms: what its blocks before this one have, and all. Publishes a share of the
  // sums, which then are counted again as one row of the table.
  template <class Thread, class S>
  TY_DEVICE void publish(Thread& gpu, S& shared, uint64_t tag, int32_t& before, int32_t& total) const {
    const int rank = gpu.template cluster_rank<kCluster>();
    if constexpr (kCluster == 1) {
      total = static_cast<int32_t>(shared.histogram(gpu.thread()));
    } else {
#pragma unroll 1
      for (int r = gpu.warp(); r < kCluster; r += kHolders<Thread>) send_histogram(gpu, shared, r);
      gpu.template await_inbox<kCluster>(shared.inbox);
#pragma unroll
      for (int r = 0; r < kCluster; ++r) {
        const auto pairs = static_cast<int32_t>(shared.received(r * kBins + gpu.thread()));
        total += pairs;
        if (r < rank) before += pairs;
      }
    }
    if constexpr (kRows > 1) {
      exchange.publish(gpu, tag, gpu.template cluster<kCluster>(), gpu.thread(), total,
                       gpu.thread() / (kBins / kCluster) == rank);
      total = 0;
    }
  }
  template <class Thread, class S>
  TY_DEVICE void send_histogram(Thread& gpu, S& shared, int to) const {
    const int slot = gpu.template cluster_rank<kCluster>() * kBins;
#pragma unroll
    for (int at = 0; at < kBins; at += 4 * Thread::warp_size) {
      const int i = at + 4 * gpu.lane();
      if (i >= kBins) break;  // four experts a lane may be more than there are
      const port::Vec4 four{
          static_cast<int32_t>(shared.histogram(i)), static_cast<int32_t>(shared.histogram(i + 1)),
          static_cast<int32_t>(shared.histogram(i + 2)), static_cast<int32_t>(shared.histogram(i + 3))};
      gpu.template send4<kCluster>(shared.inbox, shared.received, slot + i, four, to);
    }
  }

  // Where each expert's pairs begin in the sorted tile, by one warp.
  template <class Thread, class S>
  TY_DEVICE void find_starts(Thread& gpu, S& shared) const {
    constexpr int kEach = kBins / Thread::warp_size;
    int32_t count[kEach];
    int32_t sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      count[i] = static_cast<int32_t>(shared.histogram(gpu.lane() * kEach + i));
      sum += count[i];
    }
    const int32_t through = port::warp_inclusive_sum(gpu, sum);
    int32_t before = through - sum;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      shared.start(gpu.lane() * kEach + i) = before;
      before += count[i];
    }
    if (gpu.lane() == Thread::warp_size - 1) shared.length(0) = through;
  }

  template <class Thread>
  TY_DEVICE void gather(Thread& gpu, uint64_t tag, Words<Thread>& words, int32_t& before,
                        int32_t& total) const {
    constexpr int kMore = kRows - kInFlight<Thread>;
    const int own = gpu.template cluster<kCluster>();
    const auto wait = [&](int first, auto& some) {
      exchange.template gather<true, true>(gpu, tag, first, own, gpu.thread(), some, before, total);
    };
    if constexpr (kMore > 0 && kMore <= kInFlight<Thread>) {
      typename Exchange<kBins, 2>::template Words<kMore> more;
      exchange.template request<true>(gpu, kInFlight<Thread>, gpu.thread(), more);
      wait(0, words);
      wait(kInFlight<Thread>, more);
    } else {
      static_assert(kMore % kInFlight<Thread> == 0);
      wait(0, words);
#pragma unroll 1
      for (int first = kInFlight<Thread>; first < kRows; first += kInFlight<Thread>) {
        exchange.template request<true>(gpu, first, gpu.thread(), words);
        wait(first, words);
      }
    }
  }

  template <class Thread, class S>
  TY_DEVICE void scatter(Thread& gpu, S& shared, const int32_t (&expert)[kPasses][kEach]) const {
#pragma unroll
    for (int p = 0; p < kPasses; ++p) {
      if (p >= passes()) break;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (expert[p][i] < 0) continue;
        const int32_t e = expert[p][i] & 0xffff;
        shared.sorted(shared.ranks.count(sorter_warp(gpu), e) + (expert[p][i] >> 16)) =
            static_cast<uint32_t>(e << 16 | (offset(gpu, p) + i));
      }
    }
  }

  // Of a holder's run, but for the blocks that other warps hold before it.
  template <class Thread, class S>
  TY_DEVICE void count_blocks(Thread& gpu, S& shared, Run& run) const {
    run.blocks = out.block.ceil(run.pairs);
    const int32_t through = port::warp_inclusive_sum(gpu, run.blocks);
    run.first_block = through - run.blocks;
    if (gpu.lane() == Thread::warp_size - 1) shared.blocks(gpu.warp()) = through;
    if (out.wants_dropped()) {
      const int32_t valid = gpu.reduce_add(run.pairs);
      if (gpu.lane() == 0) shared.valid(gpu.warp()) = valid;
    }
  }

  // What the block must know of each run. The cursor, and a pair's place in the sorted tile, make its slot.
  template <class Thread, class S>
  TY_DEVICE void describe_run(Thread& gpu, S& shared, Run& run, int32_t before) const {
#pragma unroll
    for (int w = 0; w + 1 < kHolders<Thread>; ++w) {
      const int32_t blocks = shared.blocks(w);
      if (w < gpu.warp()) run.first_block += blocks;
    }
    shared.pairs(run.expert) = run.pairs;
    shared.first_block(run.expert) = run.first_block;
    shared.run_blocks(run.expert) = run.blocks;
    shared.cursor(run.expert) = run.first_block * out.block.divisor() + before;
    if (run.blocks > kLong) gpu.or_bits(shared.long_runs(0), 1u);
  }
  template <class S>
  static TY_DEVICE Run run_of(S& shared, int32_t expert) {
    return {expert, shared.pairs(expert), shared.first_block(expert), shared.run_blocks(expert)};
  }

  template <class Thread, class S>
  TY_DEVICE void copy_out(Thread& gpu, S& shared) const {
    const int32_t first = gpu.block() * chunk;
    const int32_t pairs = shared.length(0);
#pragma unroll
    for (int k = 0; k < (kTile + kThreads - 1) / kThreads; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) break;
      const uint32_t item = shared.sorted(at);
      const auto expert = static_cast<int32_t>(item >> 16);
      out.write_pair(at - shared.start(expert) + shared.cursor(expert),
                     first + static_cast<int32_t>(item & 0xffff));
    }
  }

  // The blocks of runs that are too long for a warp, by all threads of the grid.
  template <class Thread, class S>
  TY_DEVICE void write_long_runs(Thread& gpu, S& shared) const {
#pragma unroll 1
    for (int32_t first = 0; first < kBins; first += Thread::warp_size) {
      auto some = gpu.ballot(shared.run_blocks(first + gpu.lane()) > kLong);
#pragma unroll 1
      for (; some != 0; some &= some - 1) {
        out.write_blocks(run_of(shared, first + gpu.lowest(some)), gpu.block() * kThreads + gpu.thread(),
                         gpu.blocks() * kThreads);
      }
    }
  }

  // Everything that is not a pair.
  template <class Thread, class S>
  TY_DEVICE void write_rest(Thread& gpu, S& shared, const Run& mine, uint64_t epoch) const {
#pragma unroll 1
    for (int32_t e = gpu.block() + gpu.blocks() * (kWarps<Thread> - 1 - gpu.warp()); e < out.experts;
         e += gpu.blocks() * kWarps<Thread>) {
      const Run run = run_of(shared, e);
      out.write_pads(gpu, run);
      if (run.blocks <= kLong) out.write_blocks(run, gpu.lane(), Thread::warp_size);
    }
    if (shared.long_runs(0) != 0) write_long_runs(gpu, shared);
    const Run last = run_of(shared, kBins - 1);
    const int32_t used = last.first_block + last.blocks;
    out.template write_tail<kThreads>(gpu, used);
    if (gpu.block() != 0) return;
    if (mine.expert < out.experts) out.write_expert(mine);
    if (gpu.thread() != 0) return;
    if (out.wants_dropped()) {
      int32_t valid = 0;
      for (int w = 0; w < kHolders<Thread>; ++w) valid += shared.valid(w);
      out.write_dropped(valid);
    }
    if constexpr (kRows > 1) exchange.advance(gpu, epoch);
  }
};

}  // namespace tokenyard::align
