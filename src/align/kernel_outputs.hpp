// Writing everything that is not a pair: pads, blocks, counts, offsets, the tails up to the capacity.
#pragma once

#include <cstdint>

#include "align/contract.hpp"
#include "align/fast_divide.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

// Writes out[from, to) by `workers` threads, 16 bytes at a time where the address allows.
template <class Thread>
TY_DEVICE void fill(Thread& gpu, int32_t* out, uint32_t from, uint32_t to, int32_t value, uint32_t worker,
                    uint32_t workers) {
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(out + from) / 4 % 4);
  const uint32_t body = port::min_of(from + (4 - misaligned) % 4, to);
  const uint32_t vectors = (to - body) / 4;
  if (worker < body - from) out[from + worker] = value;
  for (uint32_t i = worker; i < vectors; i += workers) {
    gpu.store4(out + body + 4 * i, {value, value, value, value});
  }
  const uint32_t rest = body + 4 * vectors;
  if (worker < to - rest) out[rest + worker] = value;
}

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
    for (uint32_t at = begin + static_cast<uint32_t>(run.pairs) + static_cast<uint32_t>(gpu.lane()); at < end;
         at += Thread::warp_size) {
      sorted_pair_ids[at] = num_pairs;
    }
  }

  // block_expert and block_rows of a run, by `workers` threads.
  TY_DEVICE void write_blocks(const Run& run, int32_t worker, int32_t workers) const {
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

  // What lies beyond the last run, by the threads of each block from `first` on; those below have been
  // given something else to do.
  template <int kThreads, class Thread>
  TY_DEVICE void write_tail(Thread& gpu, int32_t used_blocks, int32_t first) const {
    if (gpu.thread() < first) return;
    const auto worker = static_cast<uint32_t>(gpu.block() * (kThreads - first) + gpu.thread() - first);
    const auto workers = static_cast<uint32_t>(gpu.blocks() * (kThreads - first));
    const int32_t used = used_blocks * block.divisor();
    fill(gpu, sorted_pair_ids, used, capacity_, num_pairs, worker, workers);
    for (uint32_t i = used_blocks + worker; i < static_cast<uint32_t>(num_blocks_); i += workers) {
      block_expert_[i] = -1;
      if (block_rows_ != nullptr) block_rows_[i] = 0;
    }
    if (worker == 0) {
      *num_padded_ = used;
      if (offsets_ != nullptr) offsets_[experts] = used;
    }
  }

  TY_DEVICE bool wants_dropped() const { return num_dropped_ != nullptr; }
  TY_DEVICE void write_dropped(int32_t valid_pairs) const { *num_dropped_ = num_pairs - valid_pairs; }

 private:
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
