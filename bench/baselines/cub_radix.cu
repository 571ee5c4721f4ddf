// align with a library's sort: CUB's radix sort of (expert, pair index), as TransformerEngine's permute
// begins (NVIDIA/TransformerEngine, transformer_engine/common/permutation), and what is left of align behind
// it.
//
//   DeviceRadixSort::SortPairs   the ids are the keys as they are, over the bits that experts have
//   find_runs                    a thread a sorted key: where it differs from its neighbour, an expert begins
//   write_slots                  every block scans the aligned counts for itself; a thread a slot finds its
//                                expert and copies its pair, or padding
//
// The order is stable, as ours is. The pair indices that are sorted along are the same for every call, so
// they are prepared once.
#include <algorithm>
#include <bit>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "baselines/baselines.hpp"
#include "baselines/problem.hpp"

namespace tokenyard::baselines {
namespace {

constexpr int kThreads = 1024;
static_assert(kThreads == kMaxExperts, "a thread an expert");
constexpr int kSlotsOfThread = 4;  // so that a block's scan serves more than one slot a thread

template <class Id>
struct Scratch {
  int32_t* indices;         // [pairs] 0, 1, 2, ...
  Id* sorted_ids;           // [pairs]
  int32_t* sorted_indices;  // [pairs]
  int32_t* first;           // [experts + 1] where each expert's pairs begin among the sorted ones

  static Scratch in(Layout& layout, const Problem<Id>& problem) {
    return {layout.take<int32_t>(problem.pairs), layout.take<Id>(problem.pairs),
            layout.take<int32_t>(problem.pairs), layout.take<int32_t>(problem.experts + 1)};
  }
};

__global__ void __launch_bounds__(kThreads) count_up(int32_t* indices, int32_t pairs) {
  const int32_t i = static_cast<int32_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < pairs) indices[i] = i;
}

template <class Id>
__global__ void __launch_bounds__(kThreads) find_runs(Problem<Id> problem, Scratch<Id> scratch) {
  const int32_t i = static_cast<int32_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i > problem.pairs) return;
  const auto before = i == 0 ? -1 : static_cast<int32_t>(scratch.sorted_ids[i - 1]);
  const auto here = i == problem.pairs ? problem.experts : static_cast<int32_t>(scratch.sorted_ids[i]);
  for (int32_t e = before + 1; e <= here; ++e) scratch.first[e] = i;  // those between have no pairs
}

template <class Id>
__global__ void __launch_bounds__(kThreads) write_slots(Problem<Id> problem, Scratch<Id> scratch) {
  using Scan = cub::BlockScan<int32_t, kThreads>;
  __shared__ typename Scan::TempStorage scan_storage;
  __shared__ int32_t first[kMaxExperts + 1];
  __shared__ int32_t offsets[kMaxExperts + 1];
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  const int32_t experts = problem.experts;

  for (int32_t e = thread; e <= experts; e += kThreads) first[e] = scratch.first[e];
  __syncthreads();
  const int32_t count = thread < experts ? first[thread + 1] - first[thread] : 0;
  int32_t offset = 0;
  int32_t total = 0;
  Scan(scan_storage).ExclusiveSum(problem.padded(count), offset, total);
  if (thread < experts) offsets[thread] = offset;
  if (thread == 0) offsets[experts] = total;
  __syncthreads();

  const int32_t global_thread = static_cast<int32_t>(blockIdx.x) * kThreads + thread;
  const int32_t threads = static_cast<int32_t>(gridDim.x) * kThreads;
  if (global_thread == 0) *problem.num_padded = total;
  problem.write_block_experts(offsets, global_thread, threads);
  for (int32_t slot = global_thread; slot < problem.capacity; slot += threads) {
    int32_t entry = problem.pairs;
    if (slot < total) {
      const int32_t expert = problem.expert_at(offsets, slot);
      const int32_t i = first[expert] + slot - offsets[expert];
      if (i < first[expert + 1]) entry = scratch.sorted_indices[i];
    }
    problem.sorted_pair_ids[slot] = entry;
  }
}

int blocks_for(int64_t threads) {
  return static_cast<int>(std::max<int64_t>((threads + kThreads - 1) / kThreads, 1));
}

// With `memory` nullptr only asks how many bytes the sort itself needs.
template <class Id>
cudaError_t sort(const Problem<Id>& problem, const Scratch<Id>& scratch, void* memory, size_t& bytes,
                 cudaStream_t stream) {
  const int bits = std::max<int>(std::bit_width(static_cast<uint32_t>(problem.experts - 1)), 1);
  return cub::DeviceRadixSort::SortPairs(memory, bytes, problem.ids, scratch.sorted_ids, scratch.indices,
                                         scratch.sorted_indices, problem.pairs, 0, bits, stream);
}

size_t workspace_bytes(const ty_align_args& args) {
  size_t bytes = 0;
  (void)with_problem(args, [&]<class Id>(Problem<Id> problem) {
    Layout layout;
    const Scratch<Id> scratch = Scratch<Id>::in(layout, problem);
    (void)sort(problem, scratch, nullptr, bytes, nullptr);
    bytes += layout.bytes();
    return Status();
  });
  return bytes;
}

Status prepare(const ty_align_args& args, Workspace workspace, Stream stream) {
  return with_problem(args, [&]<class Id>(Problem<Id> problem) {
    Layout layout(workspace.memory);
    count_up<<<blocks_for(problem.pairs), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        Scratch<Id>::in(layout, problem).indices, problem.pairs);
    return to_status("cub_radix", cudaGetLastError());
  });
}

Status run(const ty_align_args& args, Workspace workspace, Stream stream) {
  return with_problem(args, [&]<class Id>(Problem<Id> problem) {
    auto* const on = static_cast<cudaStream_t>(stream);
    Layout layout(workspace.memory);
    const Scratch<Id> scratch = Scratch<Id>::in(layout, problem);
    size_t bytes = workspace.bytes - layout.bytes();
    TY_RETURN_IF_ERROR(
        to_status("cub_radix",
                  sort(problem, scratch, static_cast<char*>(workspace.memory) + layout.bytes(), bytes, on)));
    find_runs<<<blocks_for(int64_t{problem.pairs} + 1), kThreads, 0, on>>>(problem, scratch);
    write_slots<<<blocks_for(problem.capacity / kSlotsOfThread), kThreads, 0, on>>>(problem, scratch);
    return to_status("cub_radix", cudaGetLastError());
  });
}

}  // namespace

Baseline cub_radix() { return {"cub_radix", true, takes, workspace_bytes, prepare, run}; }

}  // namespace tokenyard::baselines
