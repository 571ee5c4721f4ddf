// The two-kernel design that SGLang and vLLM ship (sgl-project/sglang
// sgl-kernel/csrc/moe/moe_align_kernel.cu, vllm-project/vllm csrc/moe/moe_align_sum_kernels.cu, 2025 and
// 2026).
//
//   kernel 1   block 0  counts all pairs in shared memory, scans the aligned counts, writes block_expert
//              block 1  meanwhile fills sorted_pair_ids with padding
//   kernel 2   a thread a pair: takes the next slot of its expert by an atomic on global memory
//
// Below 1024 pairs of at most 64 experts, one block does all of it with a row of counts for each thread.
//
// Taken from whichever of the two is faster: padding by 16-byte stores and block_expert by a search for each
// block (SGLang), the scan from CUB and the filling in a block of its own (vLLM).
#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "baselines/baselines.hpp"
#include "baselines/problem.hpp"

namespace tokenyard::baselines {
namespace {

constexpr int kCountThreads = 1024;
constexpr int kPlaceThreads = 256;
constexpr int kMaxPlaceBlocks = 65535;
static_assert(kCountThreads == kMaxExperts, "a thread an expert");

template <class Id>
__global__ void __launch_bounds__(kCountThreads) count_and_scan(Problem<Id> problem, int32_t* cursors) {
  using Scan = cub::BlockScan<int32_t, kCountThreads>;
  __shared__ typename Scan::TempStorage scan_storage;
  __shared__ int32_t counts[kMaxExperts];
  __shared__ int32_t offsets[kMaxExperts + 1];
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  if (blockIdx.x == 1) {
    problem.fill_with_padding(thread, kCountThreads);
    return;
  }

  counts[thread] = 0;
  __syncthreads();
#pragma unroll 4
  for (int32_t i = thread; i < problem.pairs; i += kCountThreads) {
    atomicAdd(&counts[problem.expert_of(i)], 1);
  }
  __syncthreads();

  int32_t offset = 0;
  int32_t total = 0;
  Scan(scan_storage).ExclusiveSum(problem.padded(counts[thread]), offset, total);
  if (thread < problem.experts) offsets[thread] = cursors[thread] = offset;
  if (thread == 0) offsets[problem.experts] = *problem.num_padded = total;
  __syncthreads();
  problem.write_block_experts(offsets, thread, kCountThreads);
}

template <class Id>
__global__ void __launch_bounds__(kPlaceThreads) place(Problem<Id> problem, int32_t* cursors) {
  const int32_t stride = static_cast<int32_t>(gridDim.x) * kPlaceThreads;
  for (int32_t i = static_cast<int32_t>(blockIdx.x) * kPlaceThreads + threadIdx.x; i < problem.pairs;
       i += stride) {
    problem.sorted_pair_ids[atomicAdd(&cursors[problem.expert_of(i)], 1)] = i;
  }
}

constexpr int32_t kSmallPairs = 1024;
constexpr int32_t kSmallExperts = 64;
constexpr int32_t kFillThreads = 256;
constexpr int32_t kFewestSorters = 32;

// Threads beyond those that fill count pairs, each its own, so that their places need no atomics.
template <class Id>
__global__ void __launch_bounds__(kFillThreads + kSmallExperts) small_batch(Problem<Id> problem) {
  __shared__ int32_t counts[kSmallExperts + 1][kSmallExperts + 1];  // row t + 1: of sorter t
  __shared__ int32_t offsets[kSmallExperts + 1];
  const int32_t sorter = static_cast<int32_t>(threadIdx.x) - kFillThreads;
  const int32_t sorters = static_cast<int32_t>(blockDim.x) - kFillThreads;
  const int32_t experts = problem.experts;

  if (sorter >= 0) {
    for (int32_t e = 0; e < experts; ++e) counts[sorter + 1][e] = 0;
    for (int32_t i = sorter; i < problem.pairs; i += sorters) ++counts[sorter + 1][problem.expert_of(i)];
  } else {
    problem.fill_with_padding(static_cast<int32_t>(threadIdx.x), kFillThreads);
  }
  __syncthreads();
  if (sorter >= 0 && sorter < experts) {
    counts[0][sorter] = 0;
    for (int32_t row = 1; row <= sorters; ++row) counts[row][sorter] += counts[row - 1][sorter];
  }
  __syncthreads();
  if (sorter == 0) {
    offsets[0] = 0;
    for (int32_t e = 0; e < experts; ++e) offsets[e + 1] = offsets[e] + problem.padded(counts[sorters][e]);
    *problem.num_padded = offsets[experts];
  }
  __syncthreads();
  if (sorter < 0) return;
  problem.write_block_experts(offsets, sorter, sorters);
  for (int32_t i = sorter; i < problem.pairs; i += sorters) {
    const int32_t expert = problem.expert_of(i);
    problem.sorted_pair_ids[offsets[expert] + counts[sorter][expert]++] = i;
  }
}

size_t workspace_bytes(const ty_align_args& args) {
  Layout layout;
  layout.take<int32_t>(args.num_experts);
  return layout.bytes();
}

Status run(const ty_align_args& args, Workspace workspace, Stream stream) {
  return with_problem(args, [&]<class Id>(Problem<Id> problem) {
    auto* const on = static_cast<cudaStream_t>(stream);
    if (problem.pairs < kSmallPairs && problem.experts <= kSmallExperts) {
      small_batch<<<1, kFillThreads + std::max(problem.experts, kFewestSorters), 0, on>>>(problem);
    } else {
      auto* const cursors = static_cast<int32_t*>(workspace.memory);
      count_and_scan<<<2, kCountThreads, 0, on>>>(problem, cursors);
      const int blocks = (problem.pairs + kPlaceThreads - 1) / kPlaceThreads;
      place<<<std::clamp(blocks, 1, kMaxPlaceBlocks), kPlaceThreads, 0, on>>>(problem, cursors);
    }
    return to_status("two_kernel", cudaGetLastError());
  });
}

}  // namespace

Baseline two_kernel() { return {"two_kernel", false, takes, workspace_bytes, nullptr, run}; }

}  // namespace tokenyard::baselines
