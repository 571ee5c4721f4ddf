// align in one launch without any exchange between blocks: for small batches.
//
//   ids ──every block reads all──> histogram[E] in its own shared memory
//                                    │ sum of the padded lengths below the block's experts, and of all
//                                    v
//   block b owns kOwned experts: how many of their pairs stand in lanes, warps and experts before gives each
//   pair's slot; pads go to a warp for each expert, the tail up to the capacity to all blocks.
//
// One trip to memory for the ids, three block barriers, one trip for the stores. A thread takes kItems
// consecutive pairs, so that (thread, item) is their order.
#pragma once

#include <cstdint>

#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Ids, int kThreads, int kItems, int kOwned>
struct Everywhere {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kWords = kOwned / 2;  // two counts in a word
  static_assert((kOwned == 2 || kOwned == 8) && kItems <= 32 && kTile < 1 << 16);

  template <class Thread>
  static constexpr int kWarps = kThreads / Thread::warp_size;

  template <class Thread>
  struct Shared {
    // The last block may own experts beyond the last: they have no pairs.
    typename Thread::template array<uint32_t, kMaxExperts + 8> histogram;
    typename Thread::template array<uint32_t, kWords * kWarps<Thread>>
        own;  // own experts' pairs in each warp
    typename Thread::template array<uint32_t, kWarps<Thread>> blocks;
    typename Thread::template array<uint16_t, kItems == 1 ? 1 : kTile> staged;  // own experts' pairs in order
  };

  Ids ids;
  Outputs out;

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const int32_t first = gpu.block() * kOwned;

    int32_t expert[kItems];
    ids.load_run(gpu, gpu.thread() * kItems, out.num_pairs, expert);
    gpu.zero(shared.histogram, 0, (out.experts + kOwned + 3) / 4 * 4, gpu.thread(), kThreads);
    gpu.sync_block();

    ids.resolve(kItems, expert);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (expert[k] >= 0) gpu.add(shared.histogram(expert[k]), 1u);
    }
    mark_dropped(gpu, expert);
    Own own(expert, first);
    count_own(gpu, shared, own);
    gpu.sync_block();

    const Sums sums = sum_blocks(gpu, shared, first);
    Run run[kOwned];
    int32_t pairs = 0;
    int32_t block = sums.below;
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      const auto count = static_cast<int32_t>(shared.histogram(first + j));
      run[j] = {first + j, count, block, out.block.ceil(count)};
      block += run[j].blocks;
      pairs += count;
    }
    place(gpu, shared, own, run, pairs);

#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      if (gpu.warp() == j % kWarps<Thread>) write_run(gpu, run[j]);
    }
    out.template write_tail<kThreads>(gpu, sums.all, sums.all, 0);
    if (out.wants_dropped() && gpu.block() == 0 && gpu.warp() == 0) write_dropped(gpu, shared);
  }

 private:
  // Which items of a thread belong to own experts, a bit per item, and to which of them: the bits of its
  // number in planes.
  struct Own {
    static constexpr int kPlanes = kOwned == 2 ? 1 : 3;
    uint32_t items = 0;
    uint32_t plane[kPlanes] = {};
    uint32_t before[kWords];  // pairs in the warp's lanes before this one

    TY_DEVICE Own(const int32_t (&expert)[kItems], int32_t first) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const auto number = static_cast<uint32_t>(expert[k] - first);
        if (expert[k] < 0 || number >= kOwned) continue;
        items |= 1u << k;
#pragma unroll
        for (int p = 0; p < kPlanes; ++p) plane[p] |= (number >> p & 1) << k;
      }
    }
    // Items of own expert j.
    TY_DEVICE uint32_t of(int j) const {
      uint32_t all = items;
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) all &= (j >> p & 1) != 0 ? plane[p] : ~plane[p];
      return all;
    }
    TY_DEVICE int number(int item) const {
      uint32_t j = 0;
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) j |= (plane[p] >> item & 1) << p;
      return static_cast<int>(j);
    }
  };

  struct Sums {     // of output blocks
    int32_t below;  // of the experts below this block's own
    int32_t all;
  };

  template <class Thread>
  TY_DEVICE void mark_dropped(Thread& gpu, const int32_t (&expert)[kItems]) const {
    if (out.inverse == nullptr || gpu.block() != 0) return;  // they belong to no block: the first marks them
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t pair = gpu.thread() * kItems + k;
      if (expert[k] < 0 && pair < out.num_pairs) out.inverse[pair] = -1;
    }
  }

  template <class Thread, class S>
  TY_DEVICE void count_own(Thread& gpu, S& shared, Own& own) const {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      uint32_t through;
      if constexpr (kItems == 1) {
        const auto even = gpu.ballot(own.of(2 * w) != 0);
        const auto odd = gpu.ballot(own.of(2 * w + 1) != 0);
        own.before[w] = packed(gpu.popcount(even & gpu.lanes_below()), gpu.popcount(odd & gpu.lanes_below()));
        through = packed(gpu.popcount(even), gpu.popcount(odd));
      } else {
        const uint32_t count = packed(gpu.popcount(own.of(2 * w)), gpu.popcount(own.of(2 * w + 1)));
        through = static_cast<uint32_t>(port::warp_inclusive_sum(gpu, static_cast<int32_t>(count)));
        own.before[w] = through - count;
      }
      if (gpu.lane() == Thread::warp_size - 1) shared.own(w * kWarps<Thread> + gpu.warp()) = through;
    }
  }
  static TY_DEVICE uint32_t packed(int even, int odd) {
    return static_cast<uint32_t>(even) | static_cast<uint32_t>(odd) << 16;
  }
  static TY_DEVICE int32_t half(uint32_t word, int j) {
    return static_cast<int32_t>(j % 2 == 0 ? word & 0xffff : word >> 16);
  }

  // No expert has more blocks than pairs, so sums of blocks fit in half a word.
  template <class Thread, class S>
  TY_DEVICE Sums sum_blocks(Thread& gpu, S& shared, int32_t first) const {
    uint32_t sum = 0;
#pragma unroll 1
    for (int32_t e = gpu.thread(); e < out.experts; e += kThreads) {
      const int32_t blocks = out.block.ceil(static_cast<int32_t>(shared.histogram(e)));
      sum += packed(blocks, e < first ? blocks : 0);
    }
    if (gpu.warp() * Thread::warp_size < out.experts) {
      sum = static_cast<uint32_t>(gpu.reduce_add(static_cast<int32_t>(sum)));
      if (gpu.lane() == 0) shared.blocks(gpu.warp()) = sum;
    }
    gpu.sync_block();
    const bool has = gpu.lane() < kWarps<Thread> && gpu.lane() * Thread::warp_size < out.experts;
    sum = static_cast<uint32_t>(gpu.reduce_add(has ? static_cast<int32_t>(shared.blocks(gpu.lane())) : 0));
    return {half(sum, 1), half(sum, 0)};
  }

  template <class Thread, class S>
  TY_DEVICE void place(Thread& gpu, S& shared, const Own& own, const Run (&run)[kOwned],
                       int32_t pairs) const {
    // Neighbouring lanes write far apart where most pairs are the block's own: then order them first.
    if (kItems > 1 && pairs > 2 * kThreads) return place_staged(gpu, shared, own, run, pairs);
    int32_t next[kOwned];
#pragma unroll
    for (int j = 0; j < kOwned; ++j) next[j] = run[j].first_block * out.block.divisor();
    for_each_own(gpu, shared, own, next, [&](int32_t slot, int32_t pair) { out.write_pair(slot, pair); });
  }

  template <class Thread, class S>
  TY_DEVICE void place_staged(Thread& gpu, S& shared, const Own& own, const Run (&run)[kOwned],
                              int32_t pairs) const {
    int32_t next[kOwned];
    int32_t sum = 0;
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      next[j] = sum;
      sum += run[j].pairs;
    }
    for_each_own(gpu, shared, own, next,
                 [&](int32_t at, int32_t pair) { shared.staged(at) = static_cast<uint16_t>(pair); });
    gpu.sync_block();
    for (int32_t at = gpu.thread(); at < pairs; at += kThreads) {
      int32_t before = 0;
      int32_t slot = 0;
#pragma unroll
      for (int j = 0; j < kOwned; ++j) {
        if (at >= before) slot = run[j].first_block * out.block.divisor() + at - before;
        before += run[j].pairs;
      }
      out.write_pair(slot, static_cast<uint16_t>(shared.staged(at)));
    }
  }

  // Calls visit(place, pair) for the thread's pairs of own experts. Expert j's places begin at next[j].
  template <class Thread, class S, class Visit>
  TY_DEVICE void for_each_own(Thread& gpu, S& shared, const Own& own, int32_t (&next)[kOwned],
                              Visit visit) const {
    if (!gpu.any(own.items != 0)) return;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      uint32_t warps_before = 0;
      if (gpu.lane() < gpu.warp()) warps_before = shared.own(w * kWarps<Thread> + gpu.lane());
      const uint32_t before =
          own.before[w] + static_cast<uint32_t>(gpu.reduce_add(static_cast<int32_t>(warps_before)));
      next[2 * w] += half(before, 0);
      next[2 * w + 1] += half(before, 1);
    }
    uint32_t items = own.items;
#pragma unroll 1
    while (items != 0) {
      const int item = gpu.lowest(items);
      items &= items - 1;
      const int number = own.number(item);
      int32_t at = 0;
#pragma unroll
      for (int j = 0; j < kOwned; ++j) {
        if (number == j) at = next[j]++;
      }
      visit(at, gpu.thread() * kItems + item);
    }
  }

  template <class Thread>
  TY_DEVICE void write_run(Thread& gpu, const Run& run) const {
    if (run.expert >= out.experts) return;
    if (gpu.lane() == 0) out.write_expert(run);
    out.write_pads(gpu, run);
    out.write_blocks(run, gpu.lane(), Thread::warp_size);
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
};

}  // namespace tokenyard::align
