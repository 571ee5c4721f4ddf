// align of a handful of pairs, at most a warp of them, in registers: a warp per output block.
//
//   ids ──one per lane, in every warp──> who has the same expert (match), who comes before
//                                          │
//   warp p belongs to pair p. If that pair is the first of its block, the warp writes the block: its pairs
//   and the pads behind them. If not, there is one block less in use: the warp clears one of those beyond.
//
// One trip to memory for the ids, one for the stores; no barrier, no shared memory. Only for the required
// outputs: counts per expert would take a look at every expert.
//
// kOneBlock: a block holds all pairs, so an expert has one, and there is nothing to divide.
#pragma once

#include <cstdint>

#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Ids, bool kOneBlock>
struct Registers {
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int threads = 64;  // two warps, or one wave
  static constexpr int kMaxPairs = 32;

  template <class Thread>
  static constexpr int kWarps = threads / Thread::warp_size;

  template <class Thread>
  struct Shared {
    typename Thread::template array<typename Thread::lane_mask, kWarps<Thread> * kMaxExperts> lanes;
  };

  Ids ids;
  Outputs<false> out;

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const int32_t own = gpu.block() * kWarps<Thread> + gpu.warp();  // pair

    gpu.await_previous();
    int32_t expert[1];
    ids.template load<1>(0, gpu.lane(), 1, out.num_pairs, 1, expert);
    ids.resolve(1, expert);
    gpu.let_next_begin();

    // Of every lane's pair: its rank in the expert's run, and its block there.
    const int32_t rank = gpu.popcount(same_expert(gpu, expert[0]) & gpu.lanes_below());
    const int32_t block = block_of(rank);
    const bool starts_block = expert[0] >= 0 && rank == block * out.block.divisor();

    // Of the warp's own.
    const auto bit = typename Thread::lane_mask{1} << own;
    const int32_t own_expert = gpu.shfl(expert[0], own);
    const auto own_run = gpu.ballot(expert[0] == own_expert);
    const int32_t own_block = block_of(gpu.popcount(own_run & (bit - 1)));
    const int32_t rest = gpu.popcount(own_run) - own_block * out.block.divisor();

    const auto starts = gpu.ballot(starts_block);
    const auto earlier = gpu.ballot(starts_block && expert[0] < own_expert);
    const int32_t used = gpu.popcount(starts);
    const bool writes = (starts & bit) != 0;
    const int32_t spare = gpu.popcount(~starts & (bit - 1));
    const int32_t target = writes ? gpu.popcount(earlier) + own_block : used + spare;

    if (own < out.num_pairs) {
      if (writes && expert[0] == own_expert && block == own_block) {
        out.write_pair((target - block) * out.block.divisor() + rank, gpu.lane());
      }
      out.write_whole_block(gpu, target, writes ? own_expert : -1,
                            writes ? port::min_of(rest, out.block.divisor()) : 0);
    }
    if (own == 0 && gpu.lane() == 0) out.write_totals(used);
    // Room that the caller gave beyond a block for each pair.
    if (out.num_pairs < out.num_blocks()) out.template write_unused<threads>(gpu, out.num_pairs);
  }

 private:
  TY_DEVICE int32_t block_of(int32_t rank) const { return kOneBlock ? 0 : out.block.floor(rank); }

  // The lanes that have the same expert, if it is one. By way of shared memory: to match 32 different ones
  // takes longer.
  template <class Thread>
  static TY_DEVICE typename Thread::lane_mask same_expert(Thread& gpu, int32_t expert) {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const int32_t cell = gpu.warp() * kMaxExperts + expert;
    if (expert >= 0) gpu.set(shared.lanes(cell), typename Thread::lane_mask{0});
    gpu.sync_warp();
    if (expert >= 0) gpu.or_bits(shared.lanes(cell), typename Thread::lane_mask{1} << gpu.lane());
    gpu.sync_warp();
    typename Thread::lane_mask same = 0;
    if (expert >= 0) same = shared.lanes(cell);
    return same;
  }
};

}  // namespace tokenyard::align
