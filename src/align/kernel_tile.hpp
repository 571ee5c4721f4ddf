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
// Roles, where there are warps enough: the first hold an expert a lane and do the exchange; the last find
// where experts begin in the tile; all of them rank and move pairs. More pairs than tiles can hold, or more
// experts than bins: kernel_grid.hpp.
#pragma once

#include <cstdint>

#include "align/exchange.hpp"
#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "align/kernel_rank.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Ids, bool kOptional, int kThreads, int kItems, int kBins, int kCluster, int kRows>
struct Tile {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kRows > 1;
  static constexpr int kTile = kThreads * kItems;
  static_assert(kBins <= kThreads && kTile <= 1 << 16);

  template <class Thread>
  static constexpr int kWarps = kThreads / Thread::warp_size;
  template <class Thread>
  static constexpr int kHolders = kBins / Thread::warp_size;  // warps that hold an expert a lane

  template <class Thread>
  struct Shared {
    typename Thread::template array<uint32_t, kBins> histogram;
    typename Thread::template array<uint32_t, kCluster == 1 ? 4 : kCluster * kBins> received;  // histograms
    RankTables<Thread, kThreads, kBins> ranks;
    // Of each expert in the tile: where its pairs begin, and where those of the second half of the warps do;
    // two in a word.
    typename Thread::template array<uint32_t, kBins> start;
    typename Thread::template array<uint32_t, kTile> sorted;  // experts above pairs' indices in the tile
    typename Thread::template array<int32_t, 1> length;       // of sorted
    typename Thread::template array<int32_t, kHolders<Thread>> blocks, valid;  // in each holder warp
    typename Thread::template array<int32_t, 4 * kBins> run;  // pairs, first block, blocks, cursor
    typename Thread::template array<uint32_t, 1> long_runs;   // whether there are any
    typename Thread::inbox inbox;
  };

  int32_t chunk;  // pairs of each block
  Ids ids;
  Exchange<kBins> exchange;
  Outputs<kOptional> out;

  Tile(int32_t chunk, int32_t /*blocks*/, void* workspace, const Problem& problem)
      : chunk(chunk), ids(problem), exchange(workspace, kRows, kBins), out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const bool holder = gpu.warp() < kHolders<Thread>;
    const int32_t first = gpu.block() * chunk;

    int32_t expert[kItems];
    ids.template load<kItems>(first, offset(gpu), Thread::warp_size, length(gpu), rows(), expert);
    uint64_t epoch = 0;
    if (kRows > 1 && holder) epoch = exchange.epoch(gpu);
    if (gpu.thread() == 0) {
      gpu.template open_inbox<kCluster>(shared.inbox, kCluster * kBins * static_cast<int>(sizeof(uint32_t)));
      shared.long_runs(0) = 0;
    }
    gpu.template arrive_cluster<kCluster>();
    gpu.template zero<kBins, kThreads>(shared.histogram, 0, gpu.thread());
    shared.ranks.clear(gpu);
    gpu.sync_block();

    ids.resolve(rows(), expert);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows()) break;
      if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
    }
    gpu.template wait_cluster<kCluster>();  // the neighbours' inboxes are open
    gpu.sync_block();

    const uint64_t tag = exchange.tag(epoch);
    Run run{gpu.thread(), 0, 0, 0};  // of a holder
    int32_t before = 0;              // its pairs in blocks before this one
    if (holder) publish(gpu, shared, tag, before, run.pairs);
    if (gpu.warp() == kWarps<Thread> - 1) find_starts(gpu, shared);
    if (out.wants_inverse()) mark_dropped(gpu, expert);
    rank(gpu, shared, expert);
    Words<Thread> words;  // travel while this block sorts
    if (kRows > 1 && holder) exchange.template request<true>(gpu, 0, run.expert, words);
    gpu.sync_block();

    prefix_counts(gpu, shared);
    gpu.sync_block();

    scatter(gpu, shared, expert);
    if (holder) {
      if constexpr (kRows > 1) gather(gpu, tag, words, before, run.pairs);
      run.blocks = out.block.ceil(run.pairs);
      const int32_t through = port::warp_inclusive_sum(gpu, run.blocks);
      run.first_block = through - run.blocks;
      if (gpu.lane() == Thread::warp_size - 1) shared.blocks(gpu.warp()) = through;
      if (out.wants_dropped()) {
        const int32_t valid = gpu.reduce_add(run.pairs);
        if (gpu.lane() == 0) shared.valid(gpu.warp()) = valid;
      }
    }
    gpu.sync_block();

    if (holder) publish_run(gpu, shared, run, before);
    gpu.sync_block();

    copy_out(gpu, shared);
    write_rest(gpu, shared, run, tag);
  }

 private:
  static constexpr int32_t kLong = 64;  // blocks of a run that a warp writes alone

  // Rows that are read at once; fewer where waves are wide: AMD's compiler keeps the addresses, too.
  template <class Thread>
  static constexpr int kInFlight = port::min_of(kRows, Thread::warp_size == 32 ? 8 : 2);
  template <class Thread>
  using Words = typename Exchange<kBins>::template Words<kInFlight<Thread>>;

  // Pairs go to warps in contiguous ranges of rows, so that (warp, row, lane) is their order.
  TY_DEVICE int32_t rows() const { return kItems <= 2 ? kItems : (chunk + kThreads - 1) / kThreads; }
  template <class Thread>
  TY_DEVICE int32_t offset(Thread& gpu) const {
    return gpu.warp() * rows() * Thread::warp_size + gpu.lane();
  }
  template <class Thread>
  TY_DEVICE int32_t length(Thread& gpu) const {  // pairs of this block; not above 0 beyond the last
    return port::min_of(chunk, out.num_pairs - gpu.block() * chunk);
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
      if (gpu.thread() / (kBins / kCluster) == rank) {
        exchange.publish(gpu, tag, gpu.template cluster<kCluster>(), gpu.thread(), total);
      }
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
    uint32_t before = static_cast<uint32_t>(through - sum);
#pragma unroll
    for (int i = 0; i < kEach; i += 2) {
      const uint32_t odd = before + static_cast<uint32_t>(count[i]);
      shared.start((gpu.lane() * kEach + i) / 2) = before | odd << 16;
      before = odd + static_cast<uint32_t>(count[i + 1]);
    }
    if (gpu.lane() == Thread::warp_size - 1) shared.length(0) = through;
  }

  template <class Thread>
  TY_DEVICE void mark_dropped(Thread& gpu, const int32_t (&expert)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows()) break;
      const int32_t at = offset(gpu) + k * Thread::warp_size;
      if (expert[k] < 0 && at < length(gpu)) out.write_dropped_pair(gpu.block() * chunk + at);
    }
  }

  // A rank goes above its expert: registers are scarce.
  template <class Thread, class S>
  TY_DEVICE void rank(Thread& gpu, S& shared, int32_t (&expert)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows()) break;
      const int bin = expert[k] >= 0 ? expert[k] : shared.ranks.spare_bin(gpu);
      const int32_t rank = shared.ranks.rank_row(gpu, bin, k == 0, k + 1 < rows());
      if (expert[k] >= 0) expert[k] |= rank << 16;
    }
  }

  // Turns the counts of (warp, expert) into how many pairs come before them in their half of the warps. A
  // thread of the last warps takes two experts, whose sums fit in a word, and one half.
  template <class Thread, class S>
  TY_DEVICE void prefix_counts(Thread& gpu, S& shared) const {
    constexpr int kWords = kBins / 2;
    constexpr int kHalf = kWarps<Thread> / 2;
    constexpr int kAtOnce = port::min_of(kHalf, 8);  // loads first: a store would hold them up
    const int own = gpu.thread() - (kThreads - kBins);
    if (own < 0) return;
    const int word = own % kWords;
    const int begin = own < kWords ? 0 : kHalf;
    uint32_t before = 0;
#pragma unroll 1
    for (int first = begin; first < begin + kHalf; first += kAtOnce) {
      uint32_t count[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) count[i] = shared.ranks.word(first + i, word);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        shared.ranks.word(first + i, word) = before;
        before += count[i];
      }
    }
    if (begin == 0) shared.start(kWords + word) = shared.start(word) + before;
  }
  template <class S>
  static TY_DEVICE int32_t start_of(S& shared, int half, int32_t expert) {
    const uint32_t both = shared.start(half * (kBins / 2) + expert / 2);
    return static_cast<int32_t>((both >> expert % 2 * 16) & 0xffff);
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
      typename Exchange<kBins>::template Words<kMore> more;
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
  TY_DEVICE void scatter(Thread& gpu, S& shared, const int32_t (&expert)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows()) break;
      if (expert[k] < 0) continue;
      const int32_t e = expert[k] & 0xffff;
      const int32_t index = offset(gpu) + k * Thread::warp_size;
      const int32_t start = start_of(shared, gpu.warp() / (kWarps<Thread> / 2), e);
      shared.sorted(start + shared.ranks.count_of(gpu.warp(), e) + (expert[k] >> 16)) =
          static_cast<uint32_t>(e << 16 | index);
    }
  }

  // What the block must know of each run. The cursor, and a pair's place in the sorted tile, make its slot.
  template <class Thread, class S>
  TY_DEVICE void publish_run(Thread& gpu, S& shared, Run& run, int32_t before) const {
#pragma unroll
    for (int w = 0; w + 1 < kHolders<Thread>; ++w) {
      const int32_t blocks = shared.blocks(w);
      if (w < gpu.warp()) run.first_block += blocks;
    }
    shared.run(4 * run.expert) = run.pairs;
    shared.run(4 * run.expert + 1) = run.first_block;
    shared.run(4 * run.expert + 2) = run.blocks;
    shared.run(4 * run.expert + 3) =
        run.first_block * out.block.divisor() + before - start_of(shared, 0, run.expert);
    if (run.blocks > kLong) gpu.or_bits(shared.long_runs(0), 1u);
  }
  template <class S>
  static TY_DEVICE Run run_of(S& shared, int32_t expert) {
    return {expert, shared.run(4 * expert), shared.run(4 * expert + 1), shared.run(4 * expert + 2)};
  }

  template <class Thread, class S>
  TY_DEVICE void copy_out(Thread& gpu, S& shared) const {
    const int32_t first = gpu.block() * chunk;
    const int32_t pairs = shared.length(0);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t at = gpu.thread() + k * kThreads;
      if (at >= pairs) break;
      const uint32_t item = shared.sorted(at);
      const auto expert = static_cast<int32_t>(item >> 16);
      out.write_pair(at + shared.run(4 * expert + 3), first + static_cast<int32_t>(item & 0xffff));
    }
  }

  // The blocks of runs that are too long for a warp, by all threads of the grid.
  template <class Thread, class S>
  TY_DEVICE void write_long_runs(Thread& gpu, S& shared) const {
#pragma unroll 1
    for (int32_t e = 0; e < out.experts; ++e) {
      const Run run = run_of(shared, e);
      if (run.blocks <= kLong) continue;
      out.write_blocks(run, gpu.block() * kThreads + gpu.thread(), gpu.blocks() * kThreads);
    }
  }

  // Everything that is not a pair.
  template <class Thread, class S>
  TY_DEVICE void write_rest(Thread& gpu, S& shared, const Run& mine, uint64_t tag) const {
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
    out.template write_tail<kThreads>(gpu, used, used);
    if (gpu.block() != 0) return;
    if (mine.expert < out.experts) out.write_expert(mine);
    if (gpu.thread() != 0) return;
    if (out.wants_dropped()) {
      int32_t valid = 0;
      for (int w = 0; w < kHolders<Thread>; ++w) valid += shared.valid(w);
      out.write_dropped(valid);
    }
    if constexpr (kRows > 1) exchange.advance(gpu, tag);
  }
};

}  // namespace tokenyard::align
