// align in one cooperative launch for thousands of experts: kernel_tile.hpp, where every block lays out the
// runs of all experts, with the experts shared out. Block r of each cluster owns slice r of them.
//
//   ids ─> each block histograms its tile ─> sends every slice of the histogram to the slice's owner
//                        │                                   │
//                        v                                   v
//          sorts its tile in shared memory        the owner adds up: its slice of one row of tagged
//          while all this travels                 counts (exchange.hpp); reads its slice of every row;
//                        │                        lays its runs out; sends each block its cursors
//                        │                        into them, and how many output blocks they take
//                        └───────────────┬───────────────────┘
//                                        v
//          copies its sorted pairs out; the owners of a slice, one a cluster, share what else it takes
//
// The roles are kernel_tile.hpp's: the first warps hold an expert a lane and do the exchange, the others
// sort. There is one more trip through the cluster, but each block reads only its slice of the table. Cursors
// count from where the owner's slice begins: where that is, everybody finds from the sums that come with
// them.
//
// What orders what. Both inboxes are opened before arrive_cluster, so after wait_cluster all may send.
// Everybody reads what came after having awaited its inbox, or after a barrier with threads that have. A
// block ends when it has all that its neighbours send it: nothing arrives after its end. The epoch is
// advanced by block 0 when it has the cursors of all owners of its cluster and has seen this launch's words
// of the first slice in every row: who wrote them had the counts of all blocks of a cluster, and each had
// read the epoch before it sent them.
#pragma once

#include <cstdint>

#include "align/exchange.hpp"
#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "align/kernel_sort_wide.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "tuning/align.hpp"

namespace tokenyard::align {

template <class Ids, bool kOptional, int kThreads, int kSorters, int kItems, int kExperts, int kCluster,
          int kRows>
struct Wide {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = true;
  static constexpr int kSlice = kExperts / kCluster;
  static constexpr int kTile = kSorters * kItems;
  static_assert(kCluster == 8);  // a holder sends the counts of so many experts
  static_assert(kSlice <= kThreads && kExperts <= kMaxExperts);
  static_assert((kCluster - 1) * kTile < 1 << 16);  // what the blocks before one have of an expert

  template <class Thread>
  static constexpr int kWarps = kThreads / Thread::warp_size;
  template <class Thread>
  static constexpr int kHolders = kSlice / Thread::warp_size;  // warps that hold an expert a lane: the first
  template <class Thread>
  static constexpr int kSorterWarps = kSorters / Thread::warp_size;  // the last

  template <class Thread>
  struct Shared {
    typename Thread::template array<uint32_t, kExperts> histogram;
    // Of the own slice, from each block of the cluster: counts, two in a word.
    typename Thread::template array<uint32_t, kExperts / 2> received;
    // From each owner: where this block's next pair of each expert goes, as if the slice began at slot 0;
    // and, four words each, how many output blocks the slice takes, and pairs.
    typename Thread::template array<uint32_t, kExperts> cursor;
    typename Thread::template array<uint32_t, 4 * kCluster> sums;
    WideTileSort<Thread, kSorters, kItems> sort;
    typename Thread::template array<uint16_t, kExperts> start;  // of each expert in the sorted tile
    // The own slice's runs: pairs, first block, blocks; and the first slot of the cluster's pairs, counted
    // from where the holder warp's runs begin.
    typename Thread::template array<int32_t, 3 * kSlice> run;
    typename Thread::template array<int32_t, kSlice> begin;
    typename Thread::template array<int32_t, kHolders<Thread>> blocks, valid;  // in each holder warp
    typename Thread::template array<uint64_t, 1> tag;
    typename Thread::inbox counts_inbox, cursors_inbox;
  };

  int32_t chunk;  // pairs of each block
  Ids ids;
  Exchange<kExperts> exchange;
  Outputs<kOptional> out;

  Wide(int32_t chunk, int32_t /*blocks*/, Workspace workspace, const Problem& problem)
      : chunk(chunk), ids(problem), exchange(workspace, kRows, kExperts), out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const bool holder = gpu.warp() < kHolders<Thread>;
    const bool sorter = sorter_warp(gpu) >= 0;

    gpu.await_previous();
    int32_t expert[kItems];
    if (sorter) {
      ids.template load<kItems>(gpu.block() * chunk, offset(gpu), Thread::warp_size, length(gpu), rows(),
                                expert);
    }
    uint64_t epoch = 0;
    if (gpu.thread() == 0) epoch = exchange.epoch(gpu);
    if (gpu.thread() == 0) {
      gpu.template open_inbox<kCluster>(shared.counts_inbox, 2 * kExperts);
      gpu.template open_inbox<kCluster>(shared.cursors_inbox, 4 * (kExperts + 4 * kCluster));
    }
    gpu.template arrive_cluster<kCluster>();
    gpu.template zero<kExperts, kThreads>(shared.histogram, 0, gpu.thread());
    if (sorter) shared.sort.clear(gpu, sorter_warp(gpu));
    gpu.sync_block();

    if (sorter) count(gpu, shared, expert);
    if (gpu.thread() == 0) shared.tag(0) = exchange.tag(epoch);
    gpu.template wait_cluster<kCluster>();  // the neighbours' inboxes are open
    gpu.sync_block();

    const uint64_t tag = shared.tag(0);
    Run run{own_expert(gpu), 0, 0, 0};  // of a holder; its first block counts from where the slice begins
    if (holder) publish(gpu, shared, tag);
    if (sorter) {
      const auto sync = [&] { sync_sorters(gpu); };
      shared.sort.sort(gpu, sorter_warp(gpu), rows(), sync);
      find_starts(gpu, shared);
    }
    if (holder) {
      const Told told = count_before(gpu, shared);
      lay_out(gpu, shared, tag, run);
      gpu.template sync_warps<0, kHolders<Thread>, kWarps<Thread>>();
      tell(gpu, shared, told, run);
    }
    gpu.sync_block();
    gpu.template await_inbox<kCluster>(shared.cursors_inbox);

    gpu.let_next_begin();
    const Scan slices =
        scan<kCluster>(gpu, [&](int rank) { return static_cast<int32_t>(shared.sums(4 * rank)); });
    copy_out(gpu, shared, slices);
    write_rest(gpu, shared, slices, run, epoch);
  }

 private:
  static constexpr int32_t kLong = 64;  // blocks of a run that a warp writes alone

  template <class Thread>
  static TY_DEVICE int sorter_warp(Thread& gpu) {  // below 0: of another role
    return gpu.warp() - (kWarps<Thread> - kSorterWarps<Thread>);
  }
  template <class Thread>
  static TY_DEVICE void sync_sorters(Thread& gpu) {
    gpu.template sync_warps<kWarps<Thread> - kSorterWarps<Thread>, kSorterWarps<Thread>, kWarps<Thread>>();
  }
  // Pairs go to sorters' warps in contiguous ranges of rows, so that (warp, row, lane) is their order.
  TY_DEVICE int32_t rows() const { return kItems <= 3 ? kItems : (chunk + kSorters - 1) / kSorters; }
  template <class Thread>
  TY_DEVICE int32_t offset(Thread& gpu) const {
    return sorter_warp(gpu) * rows() * Thread::warp_size + gpu.lane();
  }
  template <class Thread>
  TY_DEVICE int32_t length(Thread& gpu) const {  // pairs of this block; not above 0 beyond the last
    return port::min_of(chunk, out.num_pairs - gpu.block() * chunk);
  }

  template <class Thread>
  TY_DEVICE int32_t own_expert(Thread& gpu) const {
    return gpu.template cluster_rank<kCluster>() * kSlice + gpu.thread();
  }
  template <class Thread, class S>
  TY_DEVICE void count(Thread& gpu, S& shared, int32_t (&expert)[kItems]) const {
    ids.resolve(rows(), expert);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (k >= rows()) break;
      const int32_t at = offset(gpu) + k * Thread::warp_size;
      if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
      if (out.wants_inverse() && expert[k] < 0 && at < length(gpu)) {
        out.write_dropped_pair(gpu.block() * chunk + at);
      }
      shared.sort.put(at, expert[k]);
    }
  }

  // Sends the histogram's slices to their owners, eight experts a holder; adds up what the cluster's blocks
  // have of the own expert.
  template <class Thread, class S>
  TY_DEVICE void publish(Thread& gpu, S& shared, uint64_t tag) const {
    const auto two = [&](int i) {
      const int at = 8 * gpu.thread() + i;
      return static_cast<int32_t>(shared.histogram(at) | shared.histogram(at + 1) << 16);
    };
    constexpr int kSenders = kSlice / 8;  // of a slice
    const int slot = gpu.template cluster_rank<kCluster>() * (kSlice / 2) + gpu.thread() % kSenders * 4;
    gpu.template send4<kCluster>(shared.counts_inbox, shared.received, slot, {two(0), two(2), two(4), two(6)},
                                 gpu.thread() / kSenders);
    gpu.template await_inbox<kCluster>(shared.counts_inbox);
    uint32_t total = 0;
#pragma unroll
    for (int r = 0; r < kCluster; ++r) {
      total += shared.received(r * (kSlice / 2) + gpu.thread() / 2) >> gpu.thread() % 2 * 16 & 0xffff;
    }
    exchange.publish(gpu, tag, gpu.template cluster<kCluster>(), own_expert(gpu), static_cast<int32_t>(total),
                     true);
  }

  template <class Thread, class S>
  TY_DEVICE void find_starts(Thread& gpu, S& shared) const {
    using Sort = decltype(shared.sort);
#pragma unroll 1
    for (int32_t at = gpu.thread() - (kThreads - kSorters); at < shared.sort.length(0); at += kSorters) {
      const int32_t expert = Sort::expert_of(shared.sort.pair(at));
      if (at == 0 || Sort::expert_of(shared.sort.pair(at - 1)) != expert) {
        shared.start(expert) = static_cast<uint16_t>(at);
      }
    }
  }

  // From the counts of all clusters to the slice's runs. They begin at block 0 of each holder warp here.
  template <class Thread, class S>
  TY_DEVICE void lay_out(Thread& gpu, S& shared, uint64_t tag, Run& run) const {
    int32_t before = 0;
    if (run.expert < out.experts) {
      exchange.template gather_all<kRows>(gpu, tag, gpu.template cluster<kCluster>(), run.expert, before,
                                          run.pairs);
    }
    run.blocks = out.block.ceil(run.pairs);
    const int32_t through = port::warp_inclusive_sum(gpu, run.blocks);
    run.first_block = through - run.blocks;
    shared.begin(gpu.thread()) = run.first_block * out.block.divisor() + before;
    if (gpu.lane() == Thread::warp_size - 1) shared.blocks(gpu.warp()) = through;
    if (out.wants_dropped()) {
      const int32_t valid = gpu.reduce_add(run.pairs);
      if (gpu.lane() == 0) shared.valid(gpu.warp()) = valid;
    }
  }

  struct Scan {  // of a number a lane
    int32_t before, total;
  };
  template <int kCount, class Thread, class Number>
  static TY_DEVICE Scan scan(Thread& gpu, Number number) {
    int32_t own = 0;
    if (gpu.lane() < kCount) own = number(gpu.lane());
    const int32_t through = port::warp_inclusive_sum<kCount>(gpu, own);
    return {through - own, gpu.shfl(through, kCount - 1)};
  }

  // What a holder tells: the cursors of four of the slice's experts, to two blocks.
  struct Told {
    int quad, first;     // of experts; of the blocks
    uint32_t even, odd;  // what the blocks before have of the four, two in a word
  };
  template <class S>
  static TY_DEVICE void add_block(S& shared, int from, Told& told) {
    told.even += shared.received(from * (kSlice / 2) + 2 * told.quad);
    told.odd += shared.received(from * (kSlice / 2) + 2 * told.quad + 1);
  }
  template <class Thread, class S>
  static TY_DEVICE Told count_before(Thread& gpu, S& shared) {
    constexpr int kQuads = kSlice / 4;
    Told told{gpu.thread() % kQuads, gpu.thread() / kQuads * 2, 0, 0};
#pragma unroll 1
    for (int r = 0; r < told.first; ++r) add_block(shared, r, told);
    return told;
  }

  // Tells the blocks of the cluster where their pairs of the slice go, behind those of the blocks before, and
  // everybody how many output blocks it takes. Leaves the runs for those who write what is not a pair.
  template <class Thread, class S>
  TY_DEVICE void tell(Thread& gpu, S& shared, Told told, Run& run) const {
    const int rank = gpu.template cluster_rank<kCluster>();
    const Scan warps = scan<kHolders<Thread>>(gpu, [&](int warp) { return shared.blocks(warp); });
    const int32_t below = gpu.shfl(warps.before, 4 * told.quad / Thread::warp_size) * out.block.divisor();
    int32_t begin[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) begin[i] = below + shared.begin(4 * told.quad + i);
    port::Vec4 sums{warps.total, 0, 0, 0};
    if (out.wants_dropped()) {
      sums.y = scan<kHolders<Thread>>(gpu, [&](int warp) { return shared.valid(warp); }).total;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int to = told.first + i;
      const port::Vec4 four{begin[0] + static_cast<int32_t>(told.even & 0xffff),
                            begin[1] + static_cast<int32_t>(told.even >> 16),
                            begin[2] + static_cast<int32_t>(told.odd & 0xffff),
                            begin[3] + static_cast<int32_t>(told.odd >> 16)};
      gpu.template send4<kCluster>(shared.cursors_inbox, shared.cursor, rank * kSlice + 4 * told.quad, four,
                                   to);
      if (told.quad == 0) gpu.template send4<kCluster>(shared.cursors_inbox, shared.sums, 4 * rank, sums, to);
      if (i == 0) add_block(shared, to, told);
    }
    run.first_block += gpu.shfl(warps.before, gpu.warp());
    shared.run(3 * gpu.thread()) = run.pairs;
    shared.run(3 * gpu.thread() + 1) = run.first_block;
    shared.run(3 * gpu.thread() + 2) = run.blocks;
  }

  template <class Thread, class S>
  TY_DEVICE void copy_out(Thread& gpu, S& shared, const Scan& slices) const {
    using Sort = decltype(shared.sort);
    const int32_t first = gpu.block() * chunk;
    const int32_t pairs = shared.sort.length(0);
    const int32_t first_slot = slices.before * out.block.divisor();  // of a slice a lane
#pragma unroll 1
    for (int32_t first_at = 0; first_at < pairs; first_at += kThreads) {
      const int32_t at = first_at + gpu.thread();
      uint32_t item = 0;
      if (at < pairs) item = shared.sort.pair(at);
      const int32_t expert = Sort::expert_of(item);
      const int32_t slot = gpu.shfl(first_slot, expert / kSlice) + at;
      if (at >= pairs) continue;
      const auto cursor = static_cast<int32_t>(shared.cursor(expert));
      out.write_pair(slot + cursor - shared.start(expert), first + Sort::index_of(item));
    }
  }

  // Everything that is not a pair.
  template <class Thread, class S>
  TY_DEVICE void write_rest(Thread& gpu, S& shared, const Scan& slices, Run& mine, uint64_t epoch) const {
    const int cluster = gpu.template cluster<kCluster>();
    const int rank = gpu.template cluster_rank<kCluster>();
    const int32_t first_block = gpu.shfl(slices.before, rank);
#pragma unroll 1
    for (int32_t i = cluster + kRows * (kWarps<Thread> - 1 - gpu.warp());
         i < port::min_of(kSlice, out.experts - rank * kSlice); i += kRows * kWarps<Thread>) {
      const Run run{rank * kSlice + i, shared.run(3 * i), first_block + shared.run(3 * i + 1),
                    shared.run(3 * i + 2)};
      out.write_pads(gpu, run);
      if (run.blocks <= kLong) out.write_blocks(run, gpu.lane(), Thread::warp_size);
    }
    if (gpu.warp() < kHolders<Thread>) {
      mine.first_block += first_block;
      write_long_runs(gpu, mine);
      if (cluster == 0 && mine.expert < out.experts) out.write_expert(mine);
    }
    out.template write_tail<kThreads>(gpu, slices.total);
    if (gpu.block() != 0 || gpu.thread() != 0) return;
    if (out.wants_dropped()) {
      int32_t valid = 0;
      for (int r = 0; r < kCluster; ++r) valid += static_cast<int32_t>(shared.sums(4 * r + 1));
      out.write_dropped(valid);
    }
    exchange.advance(gpu, epoch);
  }

  // The blocks of runs that are too long for a warp, one a lane, by a warp of each cluster.
  template <class Thread>
  TY_DEVICE void write_long_runs(Thread& gpu, const Run& mine) const {
    auto todo = gpu.ballot(mine.blocks > kLong);
#pragma unroll 1
    while (todo != 0) {
      const int lane = gpu.lowest(todo);
      todo &= todo - 1;
      const Run run{gpu.shfl(mine.expert, lane), gpu.shfl(mine.pairs, lane), gpu.shfl(mine.first_block, lane),
                    gpu.shfl(mine.blocks, lane)};
      out.write_blocks(run, gpu.template cluster<kCluster>() * Thread::warp_size + gpu.lane(),
                       kRows * Thread::warp_size);
    }
  }
};

}  // namespace tokenyard::align
