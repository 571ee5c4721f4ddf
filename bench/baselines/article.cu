// The multi-block algorithm of "Efficient MoE Align & Sort design in SGLang Fused MoE" (Lei Wang, April 2025:
// AMD's blogs; its code: sgl-project/sglang pull request 3137): one cooperative launch whose phases are
// parted by barriers over the grid.
//
//   each block   counts its part of the pairs in shared memory
//                adds its counts up over the experts: local cumulative sums, not aligned   ── barrier ──
//   16 columns   merge: sum the blocks' cumulative sums, in fragments of 16 x 16           ── barrier ──
//   one block    takes the merged sums apart into counts, aligns these, adds them up again ── barrier ──
//   each block   places its pairs by atomics on the experts' global cursors
//
// Sums are merged before they are aligned because rounding up does not distribute over them. The grid is the
// article's: a block of 256 threads for every 256 tokens, at most one an expert.
//
// Better than the published code: coalesced reading, scans by all threads instead of one, sums in registers
// instead of atomics in the merge, and the padding stored in the same launch instead of by a fill before it.
#include <cooperative_groups.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "baselines/baselines.hpp"
#include "baselines/problem.hpp"

namespace tokenyard::baselines {
namespace {

constexpr int kThreads = 256;
constexpr int kTokensOfBlock = 256;
constexpr int kFragment = 16;

using Scan = cub::BlockScan<int32_t, kThreads>;

struct Scratch {
  int32_t* local_sums;   // [blocks, experts] inclusive, not aligned
  int32_t* merged_sums;  // [experts] their sum over the blocks
  int32_t* offsets;      // [experts + 1] aligned: first slots
  int32_t* cursors;      // [experts] next free slots

  static Scratch in(Layout& layout, int32_t blocks, int32_t experts) {
    return {layout.take<int32_t>(static_cast<size_t>(blocks) * experts), layout.take<int32_t>(experts),
            layout.take<int32_t>(experts + 1), layout.take<int32_t>(experts)};
  }
};

template <class Id>
__global__ void __launch_bounds__(kThreads) align_in_phases(Problem<Id> problem, Scratch scratch) {
  __shared__ int32_t counts[kMaxExperts];
  __shared__ int32_t fragment[kThreads / kFragment][kFragment];
  __shared__ typename Scan::TempStorage scan_storage;
  const auto grid = cooperative_groups::this_grid();
  const int32_t experts = problem.experts;
  const int32_t blocks = static_cast<int32_t>(gridDim.x);
  const int32_t block = static_cast<int32_t>(blockIdx.x);
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  const int32_t chunk = (problem.pairs + blocks - 1) / blocks;
  const int32_t begin = min(block * chunk, problem.pairs);
  const int32_t end = min(begin + chunk, problem.pairs);

  // Distributed counting.
  for (int32_t e = thread; e < experts; e += kThreads) counts[e] = 0;
  __syncthreads();
#pragma unroll 4
  for (int32_t i = begin + thread; i < end; i += kThreads) atomicAdd(&counts[problem.expert_of(i)], 1);
  problem.fill_with_padding(block * kThreads + thread, blocks * kThreads);
  __syncthreads();

  // Local cumulative sums.
  int32_t before = 0;
  for (int32_t first = 0; first < experts; first += kThreads) {
    const int32_t e = first + thread;
    int32_t sum = 0;
    int32_t total = 0;
    Scan(scan_storage).InclusiveSum(e < experts ? counts[e] : 0, sum, total);
    if (e < experts) scratch.local_sums[block * experts + e] = before + sum;
    before += total;
    __syncthreads();
  }
  grid.sync();

  // Merge.
  for (int32_t first = block * kFragment; first < experts; first += blocks * kFragment) {
    const int32_t row = thread / kFragment;
    const int32_t column = first + thread % kFragment;
    int32_t sum = 0;
    for (int32_t b = row; column < experts && b < blocks; b += kThreads / kFragment) {
      sum += scratch.local_sums[b * experts + column];
    }
    fragment[row][thread % kFragment] = sum;
    __syncthreads();
    if (row == 0 && column < experts) {
      for (int32_t r = 1; r < kThreads / kFragment; ++r) sum += fragment[r][thread];
      scratch.merged_sums[column] = sum;
    }
    __syncthreads();
  }
  grid.sync();

  // Aligned global cumulative sums.
  if (block == 0) {
    int32_t slot = 0;
    for (int32_t first = 0; first < experts; first += kThreads) {
      const int32_t e = first + thread;
      int32_t padded = 0;
      if (e < experts) {
        padded = problem.padded(scratch.merged_sums[e] - (e == 0 ? 0 : scratch.merged_sums[e - 1]));
      }
      int32_t sum = 0;
      int32_t total = 0;
      Scan(scan_storage).ExclusiveSum(padded, sum, total);
      if (e < experts) scratch.offsets[e] = scratch.cursors[e] = slot + sum;
      slot += total;
      __syncthreads();
    }
    if (thread == 0) *problem.num_padded = scratch.offsets[experts] = slot;
  }
  grid.sync();

  // Parallel placement.
  problem.write_block_experts(scratch.offsets, block * kThreads + thread, blocks * kThreads);
#pragma unroll 4
  for (int32_t i = begin + thread; i < end; i += kThreads) {
    problem.sorted_pair_ids[atomicAdd(&scratch.cursors[problem.expert_of(i)], 1)] = i;
  }
}

int32_t wanted_blocks(const ty_align_args& args) {
  const int64_t blocks = (args.num_tokens + kTokensOfBlock - 1) / kTokensOfBlock;
  return static_cast<int32_t>(std::clamp<int64_t>(blocks, 1, args.num_experts));
}

// Blocks that the device can hold at once: more would wait at the barrier for room.
template <class Id>
int32_t resident_blocks() {
  static const int32_t resident = [] {
    int device = 0;
    int multiprocessors = 0;
    int on_each = 0;
    (void)cudaGetDevice(&device);
    (void)cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, align_in_phases<Id>, kThreads, 0);
    return multiprocessors * on_each;
  }();
  return resident;
}

size_t workspace_bytes(const ty_align_args& args) {
  Layout layout;
  Scratch::in(layout, wanted_blocks(args), args.num_experts);
  return layout.bytes();
}

Status run(const ty_align_args& args, Workspace workspace, Stream stream) {
  return with_problem(args, [&]<class Id>(Problem<Id> problem) {
    const int32_t blocks = std::min(wanted_blocks(args), resident_blocks<Id>());
    Layout layout(workspace.memory);
    Scratch scratch = Scratch::in(layout, blocks, problem.experts);
    void* arguments[] = {&problem, &scratch};
    return to_status("article", cudaLaunchCooperativeKernel(align_in_phases<Id>, dim3(blocks), dim3(kThreads),
                                                            arguments, 0, static_cast<cudaStream_t>(stream)));
  });
}

}  // namespace

Baseline article() { return {"article", false, takes, workspace_bytes, nullptr, run}; }

}  // namespace tokenyard::baselines
