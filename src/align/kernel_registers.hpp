// align of a handful of pairs, at most a warp of them, in registers: a warp per output block.
//
//   ids ──one per lane, in every warp──> who has the same expert (match), who comes before
//                                          │
//   warp p belongs to pair p. If that pair is the first of its block, the warp writes the block: its pairs
//   and the pads behind them. If not, there is one block less in use: the warp clears one of those beyond.
//
// One trip to memory for the ids, one for the stores; no barrier, no shared memory. Only for the required
// outputs: counts per expert would take a look at every expert.
#pragma once

#include <cstdint>

#include "align/kernel_ids.hpp"
#include "align/kernel_outputs.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

template <class Ids>
struct Registers {
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int threads = 64;  // two warps, or one wave
  static constexpr int kMaxPairs = 32;

  template <class Thread>
  struct Shared {};

  Ids ids;
  Outputs<false> out;

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    constexpr int kWarps = threads / Thread::warp_size;
    const int32_t own = gpu.block() * kWarps + gpu.warp();  // pair

    gpu.await_previous();
    int32_t expert[1];
    ids.template load<1>(0, gpu.lane(), 1, out.num_pairs, 1, expert);
    ids.resolve(1, expert);
    gpu.let_next_begin();

    // Of every lane's pair: its rank in the expert's run, and its block there.
    const auto same = gpu.match(expert[0]);
    const int32_t rank = gpu.popcount(same & gpu.lanes_below());
    const int32_t block = out.block.floor(rank);
    const bool valid = expert[0] >= 0;
    const bool starts_block = valid && rank == block * out.block.divisor();

    const int32_t own_expert = gpu.shfl(expert[0], own);
    const int32_t own_block = gpu.shfl(block, own);
    const auto starts = gpu.ballot(starts_block);
    const auto earlier = gpu.ballot(starts_block && expert[0] < own_expert);
    const int32_t used = gpu.popcount(starts);
    const auto bit = typename Thread::lane_mask{1};
    const bool writes = (starts & bit << own) != 0;
    const int32_t spare = gpu.popcount(~starts & ((bit << own) - 1));
    const int32_t target = writes ? gpu.popcount(earlier) + own_block : used + spare;

    const bool member = writes && expert[0] == own_expert && block == own_block;
    const int32_t rows = gpu.popcount(gpu.ballot(member));
    if (own < out.num_pairs) {
      if (member) out.write_pair((target - block) * out.block.divisor() + rank, gpu.lane());
      out.write_whole_block(gpu, target, writes ? own_expert : -1, rows);
    }
    // Room that the caller gave beyond a block for each pair, and the total.
    out.template write_tail<threads>(gpu, port::min_of(out.num_pairs, out.num_blocks()), used);
  }
};

}  // namespace tokenyard::align
