// Writing the outputs: pairs, pads, blocks, counts, offsets, the tails up to the capacity.
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

// kOptional: some of the optional outputs are wanted, or experts are not numbered from 0. A kernel without
// that is smaller and starts sooner.
template <bool kOptional>
class Outputs {
 public:
  explicit Outputs(const Problem& problem)
      : num_pairs(static_cast<int32_t>(problem.num_pairs())),
        experts(problem.num_local_experts),
        block(problem.block_size),
        sorted_pair_ids_(problem.sorted_pair_ids),
        block_expert_(problem.block_expert),
        capacity_(static_cast<int32_t>(problem.capacity)),
        num_blocks_(static_cast<int32_t>(problem.num_blocks())),
        num_padded_(problem.num_padded),
        inverse_(problem.inverse),
        block_rows_(problem.block_rows),
        counts_(problem.counts),
        offsets_(problem.offsets),
        num_dropped_(problem.num_dropped),
        first_id_(problem.first_id) {}

  // What a kernel needs first stands first: arguments arrive a line of the constant cache at a time.
  int32_t num_pairs;
  int32_t experts;
  FastDivide block;

  TY_DEVICE void write_pair(int32_t slot, int32_t pair) const {
    sorted_pair_ids_[slot] = pair;
    if (wants_inverse()) inverse_[pair] = slot;
  }
  TY_DEVICE void write_dropped_pair(int32_t pair) const {
    if (wants_inverse()) inverse_[pair] = -1;
  }
  TY_DEVICE bool wants_inverse() const { return kOptional && inverse_ != nullptr; }

  // counts and offsets of one expert, by one thread.
  TY_DEVICE void write_expert(const Run& run) const {
    if (kOptional && counts_ != nullptr) counts_[run.expert] = run.pairs;
    if (kOptional && offsets_ != nullptr) offsets_[run.expert] = run.first_block * block.divisor();
  }

  // The pads that end a run, by one warp.
  template <class Thread>
  TY_DEVICE void write_pads(Thread& gpu, const Run& run) const {
    const uint32_t begin = first_slot(run.first_block);
    write_pads(gpu, begin + static_cast<uint32_t>(run.pairs), begin + first_slot(run.blocks));
  }

  // block_expert and block_rows of a run, by `workers` threads.
  TY_DEVICE void write_blocks(const Run& run, int32_t worker, int32_t workers) const {
    for_each(static_cast<uint32_t>(worker), static_cast<uint32_t>(run.blocks), static_cast<uint32_t>(workers),
             [&](uint32_t i) { write_block(run.first_block + static_cast<int32_t>(i), run); });
  }

  // One of them.
  TY_DEVICE void write_block(int32_t index, const Run& run) const {
    block_expert_[index] = kOptional ? first_id_ + run.expert : run.expert;
    if (kOptional && block_rows_ != nullptr) {
      const int32_t rest = run.pairs - (index - run.first_block) * block.divisor();
      block_rows_[index] = port::min_of(rest, block.divisor());
    }
  }

  // A block as a whole but for its pairs, by one warp: `pairs` of `expert`, or none and -1. No block beyond
  // the last is written, however far beyond: there are no more slots than capacity, and so no overflow.
  template <class Thread>
  TY_DEVICE void write_whole_block(Thread& gpu, int32_t index, int32_t expert, int32_t pairs) const {
    const auto capacity = static_cast<uint32_t>(capacity_);
    const uint32_t begin = port::min_of(first_slot(port::min_of(index, num_blocks_)), capacity);
    write_pads(gpu, begin + static_cast<uint32_t>(pairs), port::min_of(begin + first_slot(1), capacity));
    if (gpu.lane() == 0 && index < num_blocks_) write_block(index, {expert, pairs, index, 1});
  }

  // What lies beyond the last run, and the totals, by all threads.
  template <int kThreads, class Thread>
  TY_DEVICE void write_tail(Thread& gpu, int32_t used_blocks) const {
    write_unused<kThreads>(gpu, used_blocks);
    if (gpu.block() == 0 && gpu.thread() == 0) write_totals(used_blocks);
  }

  // Blocks from `begin` on and their slots, by all threads.
  template <int kThreads, class Thread>
  TY_DEVICE void write_unused(Thread& gpu, int32_t begin) const {
    const auto worker = static_cast<uint32_t>(gpu.block() * kThreads + gpu.thread());
    const auto workers = static_cast<uint32_t>(gpu.blocks() * kThreads);
    for_each(first_slot(begin) + worker, static_cast<uint32_t>(capacity_), workers,
             [&](uint32_t at) { sorted_pair_ids_[at] = num_pairs; });
    write_unused_blocks(begin, static_cast<int32_t>(worker), static_cast<int32_t>(workers));
  }

  // The blocks alone.
  TY_DEVICE void write_unused_blocks(int32_t begin, int32_t worker, int32_t workers) const {
    for_each(static_cast<uint32_t>(begin + worker), static_cast<uint32_t>(num_blocks_),
             static_cast<uint32_t>(workers), [&](uint32_t i) {
               block_expert_[i] = -1;
               if (kOptional && block_rows_ != nullptr) block_rows_[i] = 0;
             });
  }
  TY_DEVICE void write_totals(int32_t used_blocks) const {
    *num_padded_ = used_blocks * block.divisor();
    if (kOptional && offsets_ != nullptr) offsets_[experts] = used_blocks * block.divisor();
  }

  // Every slot as if it were padding, in stretches that warps take in turn: this one those that leave
  // `worker` of `workers`.
  template <class Thread>
  TY_DEVICE void fill(Thread& gpu, int32_t worker, int32_t workers) const {
    constexpr uint32_t kStretch = 4 * Thread::warp_size;
    const bool aligned = reinterpret_cast<uintptr_t>(sorted_pair_ids_) % sizeof(port::Vec4) == 0;
    const auto end = static_cast<uint32_t>(capacity_);
#pragma unroll 1
    for (uint32_t first = kStretch * static_cast<uint32_t>(worker); first < end;
         first += kStretch * static_cast<uint32_t>(workers)) {
      if (aligned && first + kStretch <= end) {
        gpu.store4(sorted_pair_ids_ + first + 4 * gpu.lane(), {num_pairs, num_pairs, num_pairs, num_pairs});
      } else {
        write_pads(gpu, first, port::min_of(first + kStretch, end));
      }
    }
  }
  template <class Thread>
  TY_DEVICE int32_t stretch_of(int32_t slot) const {
    return slot / (4 * Thread::warp_size);
  }

  TY_DEVICE int32_t num_blocks() const { return num_blocks_; }
  TY_DEVICE bool wants_dropped() const { return kOptional && num_dropped_ != nullptr; }
  TY_DEVICE void write_dropped(int32_t valid_pairs) const { *num_dropped_ = num_pairs - valid_pairs; }

 private:
  // Calls visit(i) for i, i + step, … below end. Mostly for one of them at most, for which straight code is
  // faster than a loop.
  template <class Visit>
  static TY_DEVICE void for_each(uint32_t i, uint32_t end, uint32_t step, Visit visit) {
    if (i < end) visit(i);
#pragma unroll 1
    for (i += step; i < end; i += step) visit(i);
  }

  TY_DEVICE uint32_t first_slot(int32_t index) const {
    return static_cast<uint32_t>(index) * static_cast<uint32_t>(block.divisor());
  }

  template <class Thread>
  TY_DEVICE void write_pads(Thread& gpu, uint32_t begin, uint32_t end) const {
    constexpr uint32_t kAtOnce = 128;
    uint32_t at = begin + static_cast<uint32_t>(gpu.lane());
    int32_t* const slot = sorted_pair_ids_ + at;
    const int32_t pad = num_pairs;
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i += Thread::warp_size) {
      if (at + i < end) slot[i] = pad;
    }
#pragma unroll 1
    for (at += kAtOnce; at < end; at += Thread::warp_size) sorted_pair_ids_[at] = pad;
  }

  int32_t* sorted_pair_ids_;
  int32_t* block_expert_;
  int32_t capacity_;
  int32_t num_blocks_;
  int32_t* num_padded_;
  int32_t* inverse_;  // this and below: or nullptr
  int32_t* block_rows_;
  int32_t* counts_;
  int32_t* offsets_;
  int32_t* num_dropped_;
  int32_t first_id_;
};

}  // namespace tokenyard::align
