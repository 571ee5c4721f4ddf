// Writing everything that is not a pair: pads, blocks, counts, offsets, the tails up to the capacity.
#pragma once

#include <cstdint>

#include "align/contract.hpp"
#include "align/fast_divide.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

// Where one expert's run lies.
struct Run {
  int32_t expert;
  int32_t pairs;        // valid pairs
  int32_t first_block;  // its slots begin at first_block * block size
  int32_t blocks;
};

class Outputs {
 public:
  explicit Outputs(const Problem& problem)
      : num_pairs(static_cast<int32_t>(problem.num_pairs())),
        experts(problem.num_local_experts),
        block(problem.block_size),
        sorted_pair_ids(problem.sorted_pair_ids),
        inverse(problem.inverse),
        vectors_(reinterpret_cast<uintptr_t>(problem.sorted_pair_ids) % sizeof(port::Vec4) == 0 &&
                 problem.block_size % 4 == 0 && problem.capacity % 4 == 0),
        capacity_(static_cast<int32_t>(problem.capacity)),
        num_blocks_(static_cast<int32_t>(problem.num_blocks())),
        block_expert_(problem.block_expert),
        block_rows_(problem.block_rows),
        num_padded_(problem.num_padded),
        counts_(problem.counts),
        offsets_(problem.offsets),
        num_dropped_(problem.num_dropped) {}

  // What a kernel needs first stands first: arguments arrive a line of the constant cache at a time.
  int32_t num_pairs;
  int32_t experts;
  FastDivide block;
  int32_t* sorted_pair_ids;
  int32_t* inverse;  // or nullptr

  TY_DEVICE void write_pair(int32_t slot, int32_t pair) const {
    sorted_pair_ids[slot] = pair;
    if (inverse != nullptr) inverse[pair] = slot;
  }

  // counts and offsets of one expert, by one thread.
  TY_DEVICE void write_expert(const Run& run) const {
    if (counts_ != nullptr) counts_[run.expert] = run.pairs;
    if (offsets_ != nullptr) offsets_[run.expert] = run.first_block * block.divisor();
  }

  // The pads that end a run, by one warp.
  template <class Thread>
  TY_DEVICE void write_pads(Thread& gpu, const Run& run) const {
    const auto begin = static_cast<uint32_t>(run.first_block * block.divisor());
    const uint32_t end = begin + static_cast<uint32_t>(run.blocks * block.divisor());
    write_pads(gpu, begin + static_cast<uint32_t>(run.pairs), end);
  }
  template <class Thread>
  TY_DEVICE void write_pads(Thread& gpu, uint32_t begin, uint32_t end) const {
#pragma unroll 1
    for (uint32_t at = begin + static_cast<uint32_t>(gpu.lane()); at < end; at += Thread::warp_size) {
      sorted_pair_ids[at] = num_pairs;
    }
  }

  // A block as a whole but for its pairs, by one warp: `pairs` of `expert`, or none and -1. No block beyond
  // the last is written.
  template <class Thread>
  TY_DEVICE void write_block(Thread& gpu, int32_t index, int32_t expert, int32_t pairs) const {
    if (index >= num_blocks_) return;
    const auto begin = static_cast<uint32_t>(index * block.divisor());
    const auto end = begin + static_cast<uint32_t>(block.divisor());
    write_pads(gpu, begin + static_cast<uint32_t>(pairs),
               port::min_of(end, static_cast<uint32_t>(capacity_)));
    if (gpu.lane() == 0) {
      block_expert_[index] = expert;
      if (block_rows_ != nullptr) block_rows_[index] = pairs;
    }
  }

  // block_expert and block_rows of the block that begins with this slot, if one does. `runs` tells of an
  // expert's run where it is needed.
  template <class Runs>
  TY_DEVICE void begin_block(int32_t slot, int32_t expert, Runs runs) const {
    const int32_t index = block.floor(slot);
    if (index * block.divisor() != slot) return;
    block_expert_[index] = expert;
    if (block_rows_ != nullptr) {
      const Run run = runs(expert);
      block_rows_[index] =
          port::min_of(run.pairs - (index - run.first_block) * block.divisor(), block.divisor());
    }
  }

  // block_expert and block_rows of a run, by `workers` threads.
  TY_DEVICE void write_blocks(const Run& run, int32_t worker, int32_t workers) const {
#pragma unroll 1
    for (auto i = static_cast<uint32_t>(worker); i < static_cast<uint32_t>(run.blocks);
         i += static_cast<uint32_t>(workers)) {
      const auto index = static_cast<int32_t>(i);
      block_expert_[run.first_block + index] = run.expert;
      if (block_rows_ != nullptr) {
        const int32_t rest = run.pairs - index * block.divisor();
        block_rows_[run.first_block + index] = port::min_of(rest, block.divisor());
      }
    }
  }

  // What lies beyond the last run, and the totals, by the threads of each block from `first` on; those below
  // have been given something else to do. Blocks before `begin` are written already.
  template <int kThreads, class Thread>
  TY_DEVICE void write_tail(Thread& gpu, int32_t begin, int32_t used_blocks, int32_t first) const {
    if (gpu.thread() < first) return;
    const auto worker = static_cast<uint32_t>(gpu.block() * (kThreads - first) + gpu.thread() - first);
    const auto workers = static_cast<uint32_t>(gpu.blocks() * (kThreads - first));
    const uint32_t from = static_cast<uint32_t>(begin) * static_cast<uint32_t>(block.divisor());
    const auto to = static_cast<uint32_t>(capacity_);
    if (vectors_) {
#pragma unroll 1
      for (uint32_t i = from / 4 + worker; i < to / 4; i += workers) {
        gpu.store4(sorted_pair_ids + 4 * i, {num_pairs, num_pairs, num_pairs, num_pairs});
      }
    } else {
#pragma unroll 1
      for (uint32_t i = from + worker; i < to; i += workers) sorted_pair_ids[i] = num_pairs;
    }
#pragma unroll 1
    for (uint32_t i = begin + worker; i < static_cast<uint32_t>(num_blocks_); i += workers) {
      block_expert_[i] = -1;
      if (block_rows_ != nullptr) block_rows_[i] = 0;
    }
    if (worker == 0) {
      *num_padded_ = used_blocks * block.divisor();
      if (offsets_ != nullptr) offsets_[experts] = used_blocks * block.divisor();
    }
  }

  TY_DEVICE int32_t num_blocks() const { return num_blocks_; }
  TY_DEVICE bool wants_dropped() const { return num_dropped_ != nullptr; }
  TY_DEVICE void write_dropped(int32_t valid_pairs) const { *num_dropped_ = num_pairs - valid_pairs; }

 private:
  bool vectors_;  // sorted_pair_ids may be written 16 bytes at a time, by blocks
  int32_t capacity_;
  int32_t num_blocks_;
  int32_t* block_expert_;
  int32_t* block_rows_;
  int32_t* num_padded_;
  int32_t* counts_;
  int32_t* offsets_;
  int32_t* num_dropped_;
};

}  // namespace tokenyard::align
