// align in one launch without any exchange between blocks: for small batches.
//
//   ids ──every block reads all──> histogram[E] in its own shared memory
//                                    │ sum of the padded lengths below the block's experts, and of all
//                                    v
//   block b owns some experts: how many of their pairs stand in lanes, warps and experts before gives each
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

// A block owns kOwned experts, or at most 32.
template <class Ids, bool kOptional, int kThreads, int kItems, int kOwned>
struct Everywhere {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kTile = kThreads * kItems;
  static_assert((kOwned == 2 || kOwned == 4 || kOwned == 32) && kItems <= 32 && kTile < 1 << 16);

  // Own experts are counted two at a time, two counts in a word. Where they are many, only those that a warp
  // has pairs of.
  static constexpr int kWords = kOwned / 2;
  static constexpr bool kMany = kOwned > 4;
  static constexpr int kMost = kMany ? kMaxExperts : kOwned * 128;  // experts: so many for each of 128 blocks
  // Each warp adds up all experts' output blocks itself, which takes no barrier.
  static constexpr bool kAlone = kOwned == 2 && kThreads <= 256;

  template <class Thread>
  static constexpr int kWarps = kThreads / Thread::warp_size;

  template <class Thread>
  struct Shared {
    // The last block may own experts beyond the last: they have no pairs. Behind them, what is no pair.
    typename Thread::template array<uint32_t, kMost + 4> histogram;
    typename Thread::template array<uint32_t, kWords * kWarps<Thread>>
        own;  // own experts' pairs in each warp
    typename Thread::template array<uint32_t, kMany ? kWarps<Thread> : 1> present;  // words that a warp has
    typename Thread::template array<uint32_t, kWarps<Thread>> blocks;
    typename Thread::template array<uint16_t, kItems == 1 ? 1 : kTile> staged;  // own experts' pairs in order
  };

  Ids ids;
  Outputs<kOptional> out;
  int32_t owned_if_many;

  TY_DEVICE int32_t owned() const { return kMany ? owned_if_many : kOwned; }

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const int32_t first = gpu.block() * owned();

    gpu.await_previous();
    int32_t expert[kItems];
    ids.load_run(gpu, gpu.thread() * kItems, out.num_pairs, expert);
    gpu.template zero<kMost + 4, kThreads>(shared.histogram, 0, gpu.thread());
    if constexpr (kMany) {
      gpu.template zero<kWords * kWarps<Thread>, kThreads>(shared.own, 0, gpu.thread());
      if (gpu.lane() == 0) shared.present(gpu.warp()) = 0;
    }
    gpu.sync_block();

    ids.resolve(kItems, expert);
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const auto cell = port::min_of(static_cast<uint32_t>(expert[k]), static_cast<uint32_t>(kMost));
      gpu.add(shared.histogram(static_cast<int>(cell)), 1u);
    }
    if (out.wants_inverse() && gpu.block() == 0) mark_dropped(gpu, expert);
    Own own(expert, first, static_cast<uint32_t>(owned()));
    count_own(gpu, shared, own);
    gpu.sync_block();

    gpu.let_next_begin();
    const Sums sums = sum_blocks(gpu, shared, first);
    const OwnRuns runs = find_runs(gpu, shared, first, sums.below);
    place(gpu, shared, own, runs);
#pragma unroll 1
    for (int j = gpu.warp(); j < owned(); j += kWarps<Thread>) write_run(gpu, first + j, runs, j);
    out.template write_tail<kThreads>(gpu, sums.all);
    if (out.wants_dropped() && gpu.block() == 0 && gpu.warp() == 0) write_dropped(gpu, shared);
  }

 private:
  // Which items of a thread belong to own experts, a bit per item, and to which of them: the bits of its
  // number in planes, which say nothing of other items.
  struct Own {
    static constexpr int kPlanes = kOwned == 2 ? 1 : kOwned == 4 ? 2 : 5;
    uint32_t items = 0;
    uint32_t plane[kPlanes] = {};
    uint32_t before[kMany ? 1 : kWords];  // pairs in the warp's lanes before this one

    TY_DEVICE Own(const int32_t (&expert)[kItems], int32_t first, uint32_t owned) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const auto number = static_cast<uint32_t>(expert[k] - first);  // large without a pair
        items |= number < owned ? 1u << k : 0;
#pragma unroll
        for (int p = 0; p < kPlanes; ++p) plane[p] |= (number >> p & 1) << k;
      }
    }
    // Items of the own experts 2 * word and 2 * word + 1. The first plane tells them apart.
    TY_DEVICE uint32_t of_word(int word) const {
      uint32_t all = items;
#pragma unroll
      for (int p = 1; p < kPlanes; ++p) all &= (word >> (p - 1) & 1) != 0 ? plane[p] : ~plane[p];
      return all;
    }
    TY_DEVICE int word_of(int item) const {
      uint32_t word = 0;
#pragma unroll
      for (int p = 1; p < kPlanes; ++p) word |= (plane[p] >> item & 1) << (p - 1);
      return static_cast<int>(word);
    }
  };

  struct Sums {     // of output blocks
    int32_t below;  // of the experts below this block's own
    int32_t all;
  };

  // Of the own experts: few, all of them in every lane; many, number lane() alone.
  struct OwnRuns {
    static constexpr int kHeld = kMany ? 1 : kOwned;
    int32_t pairs[kHeld];
    int32_t pairs_before[kHeld];  // of the own experts before it
    int32_t first_block[kHeld];
    int32_t blocks[kHeld];
    int32_t all_pairs;  // of all own experts

    template <class Thread>
    static TY_DEVICE int32_t of(Thread& gpu, int j, const int32_t (&held)[kHeld]) {
      if constexpr (kMany) return gpu.shfl(held[0], j);
      int32_t chosen = held[0];
#pragma unroll
      for (int i = 1; i < kHeld; ++i) chosen = i == j ? held[i] : chosen;
      return chosen;
    }
  };

  static TY_DEVICE uint32_t packed(int even, int odd) {
    return static_cast<uint32_t>(even) | static_cast<uint32_t>(odd) << 16;
  }
  static TY_DEVICE int32_t even(uint32_t word) { return static_cast<int32_t>(word & 0xffff); }
  static TY_DEVICE int32_t odd(uint32_t word) { return static_cast<int32_t>(word >> 16); }

  template <class Thread>
  TY_DEVICE void mark_dropped(Thread& gpu, const int32_t (&expert)[kItems]) const {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int32_t pair = gpu.thread() * kItems + k;
      if (expert[k] < 0 && pair < out.num_pairs) out.write_dropped_pair(pair);
    }
  }

  // A word's pairs in the lanes before this one, and in the last lane all.
  struct InWarp {
    uint32_t before, through;
  };
  template <class Thread>
  static TY_DEVICE InWarp count_word(Thread& gpu, const Own& own, int word) {
    const uint32_t both = own.of_word(word);
    const uint32_t evens = both & ~own.plane[0];
    const uint32_t odds = both & own.plane[0];
    const bool repeats = (evens & (evens - 1)) != 0 || (odds & (odds - 1)) != 0;
    if (kItems == 1 || !gpu.any(repeats)) {  // a token's experts are distinct
      const auto even_lanes = gpu.ballot(evens != 0);
      const auto odd_lanes = gpu.ballot(odds != 0);
      return {
          packed(gpu.popcount(even_lanes & gpu.lanes_below()), gpu.popcount(odd_lanes & gpu.lanes_below())),
          packed(gpu.popcount(even_lanes), gpu.popcount(odd_lanes))};
    }
    const uint32_t count = packed(gpu.popcount(evens), gpu.popcount(odds));
    const auto through = static_cast<uint32_t>(port::warp_inclusive_sum(gpu, static_cast<int32_t>(count)));
    return {through - count, through};
  }

  template <class Thread, class S>
  TY_DEVICE void count_own(Thread& gpu, S& shared, Own& own) const {
    if constexpr (kMany) {
      uint32_t words = 0;
      for (uint32_t items = own.items; items != 0; items &= items - 1) {
        words |= 1u << own.word_of(gpu.lowest(items));
      }
      if (words != 0) gpu.or_bits(shared.present(gpu.warp()), words);
      gpu.sync_warp();
    }
    for_each_word(gpu, shared, [&](int word) {
      const InWarp count = count_word(gpu, own, word);
      if constexpr (!kMany) own.before[word] = count.before;
      if (gpu.lane() == Thread::warp_size - 1) shared.own(word * kWarps<Thread> + gpu.warp()) = count.through;
    });
  }

  template <class Thread, class S, class Visit>
  TY_DEVICE void for_each_word(Thread& gpu, S& shared, Visit visit) const {
    if constexpr (kMany) {
      uint32_t words = shared.present(gpu.warp());
#pragma unroll 1
      for (; words != 0; words &= words - 1) visit(gpu.lowest(words));
    } else {
#pragma unroll
      for (int word = 0; word < kWords; ++word) visit(word);
    }
  }

  // No expert has more blocks than pairs, so sums of blocks fit in half a word.
  template <class Thread, class S>
  TY_DEVICE Sums sum_blocks(Thread& gpu, S& shared, int32_t first) const {
    constexpr int kAdders = kAlone ? Thread::warp_size : port::min_of(kThreads, kMost);
    constexpr int kEach = kMost / kAdders;
    uint32_t sum = 0;
    if (kAlone || gpu.thread() < kAdders) {
      const int32_t begin = (kAlone ? gpu.lane() : gpu.thread()) * kEach;
#pragma unroll
      for (int32_t e = begin; e < begin + kEach; ++e) {
        const int32_t blocks = out.block.ceil(static_cast<int32_t>(shared.histogram(e)));
        sum += packed(blocks, e < first ? blocks : 0);
      }
      sum = static_cast<uint32_t>(gpu.reduce_add(static_cast<int32_t>(sum)));
      if (!kAlone && gpu.lane() == 0) shared.blocks(gpu.warp()) = sum;
    }
    if constexpr (!kAlone) {
      gpu.sync_block();
      sum = gpu.lane() < kAdders / Thread::warp_size ? static_cast<uint32_t>(shared.blocks(gpu.lane())) : 0;
      sum = static_cast<uint32_t>(gpu.reduce_add(static_cast<int32_t>(sum)));
    }
    return {odd(sum), even(sum)};
  }

  template <class Thread, class S>
  TY_DEVICE OwnRuns find_runs(Thread& gpu, S& shared, int32_t first, int32_t blocks_below) const {
    OwnRuns runs;
    if constexpr (kMany) {
      const int32_t pairs =
          gpu.lane() < owned() ? static_cast<int32_t>(shared.histogram(first + gpu.lane())) : 0;
      const int32_t blocks = out.block.ceil(pairs);
      const auto through = static_cast<uint32_t>(
          port::warp_inclusive_sum<kOwned>(gpu, static_cast<int32_t>(packed(pairs, blocks))));
      return {{pairs},
              {even(through) - pairs},
              {blocks_below + odd(through) - blocks},
              {blocks},
              even(gpu.shfl(through, kOwned - 1))};
    } else {
      runs.all_pairs = 0;
#pragma unroll
      for (int j = 0; j < kOwned; ++j) {
        runs.pairs[j] = static_cast<int32_t>(shared.histogram(first + j));
        runs.pairs_before[j] = runs.all_pairs;
        runs.first_block[j] = blocks_below;
        runs.blocks[j] = out.block.ceil(runs.pairs[j]);
        runs.all_pairs += runs.pairs[j];
        blocks_below += runs.blocks[j];
      }
      return runs;
    }
  }

  template <class Thread, class S>
  TY_DEVICE void place(Thread& gpu, S& shared, const Own& own, const OwnRuns& runs) const {
    // Neighbouring lanes write far apart where most pairs are the block's own: then order them first.
    if (kItems > 1 && runs.all_pairs > 2 * kThreads) return place_staged(gpu, shared, own, runs);
    visit_own(
        gpu, shared, own, [&](int j) { return OwnRuns::of(gpu, j, runs.first_block) * out.block.divisor(); },
        [&](int32_t slot, int32_t pair) { out.write_pair(slot, pair); });
  }

  template <class Thread, class S>
  TY_DEVICE void place_staged(Thread& gpu, S& shared, const Own& own, const OwnRuns& runs) const {
    visit_own(
        gpu, shared, own, [&](int j) { return OwnRuns::of(gpu, j, runs.pairs_before); },
        [&](int32_t at, int32_t pair) { shared.staged(at) = static_cast<uint16_t>(pair); });
    gpu.sync_block();
#pragma unroll 1
    for (int j = 0; j < owned(); ++j) {
      const int32_t pairs = OwnRuns::of(gpu, j, runs.pairs);
      const int32_t from = OwnRuns::of(gpu, j, runs.pairs_before);
      const int32_t to = OwnRuns::of(gpu, j, runs.first_block) * out.block.divisor();
#pragma unroll 1
      for (int32_t at = gpu.thread(); at < pairs; at += kThreads) {
        out.write_pair(to + at, static_cast<uint16_t>(shared.staged(from + at)));
      }
    }
  }

  // Calls visit(place, pair) for the thread's pairs of own experts. The places of own expert j begin at
  // begin(j).
  template <class Thread, class S, class Begin, class Visit>
  TY_DEVICE void visit_own(Thread& gpu, S& shared, const Own& own, Begin begin, Visit visit) const {
    if (!gpu.any(own.items != 0)) return;
    for_each_word(gpu, shared, [&](int word) {
      uint32_t before = 0;
      if (gpu.lane() < gpu.warp()) before = shared.own(word * kWarps<Thread> + gpu.lane());
      before = static_cast<uint32_t>(gpu.reduce_add(static_cast<int32_t>(before)));
      if constexpr (kMany) {
        before += count_word(gpu, own, word).before;
      } else {
        before += own.before[word];
      }
      int32_t even_place = begin(2 * word) + even(before);
      int32_t odd_place = begin(2 * word + 1) + odd(before);
#pragma unroll 1
      for (uint32_t items = own.of_word(word); items != 0; items &= items - 1) {
        const int item = kItems == 1 ? 0 : gpu.lowest(items);
        const bool is_odd = (own.plane[0] >> item & 1) != 0;
        visit(is_odd ? odd_place++ : even_place++, gpu.thread() * kItems + item);
        if constexpr (kItems == 1) break;
      }
    });
  }

  template <class Thread>
  TY_DEVICE void write_run(Thread& gpu, int32_t expert, const OwnRuns& own, int j) const {
    const Run run{expert, OwnRuns::of(gpu, j, own.pairs), OwnRuns::of(gpu, j, own.first_block),
                  OwnRuns::of(gpu, j, own.blocks)};
    if (expert >= out.experts) return;
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
