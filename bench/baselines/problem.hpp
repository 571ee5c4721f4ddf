// What the baselines share: the call as kernels see it, and steps that any design needs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "runtime/backend.hpp"
#include "runtime/status.hpp"
#include "runtime/text.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::baselines {

inline constexpr int32_t kMaxExperts = 1024;  // a thread an expert in the largest block
inline bool takes(const ty_align_args& args) { return args.num_experts <= kMaxExperts; }

template <class Id>
struct Problem {
  const Id* ids;  // [pairs]
  int32_t pairs;
  int32_t experts;
  int32_t block;
  int32_t capacity;
  int32_t* sorted_pair_ids;
  int32_t* block_expert;
  int32_t* num_padded;

  explicit Problem(const ty_align_args& args)
      : ids(static_cast<const Id*>(args.topk_ids)),
        pairs(static_cast<int32_t>(args.num_tokens * args.top_k)),
        experts(args.num_experts),
        block(args.block_size),
        capacity(static_cast<int32_t>(args.capacity)),
        sorted_pair_ids(args.sorted_pair_ids),
        block_expert(args.block_expert),
        num_padded(args.num_padded) {}

  // Through the read-only cache, so that a loop's loads need not wait for its atomics.
  __device__ int32_t expert_of(int32_t pair) const { return static_cast<int32_t>(__ldg(ids + pair)); }

  __device__ int32_t padded(int32_t count) const { return (count + block - 1) / block * block; }

  // Fills all of sorted_pair_ids with padding, 16 bytes a store; a design stores its pairs on top.
  __device__ void fill_with_padding(int32_t thread, int32_t threads) const {
    const int32_t fours = capacity / 4;
    for (int32_t i = thread; i < fours; i += threads) {
      reinterpret_cast<int4*>(sorted_pair_ids)[i] = make_int4(pairs, pairs, pairs, pairs);
    }
    for (int32_t i = 4 * fours + thread; i < capacity; i += threads) sorted_pair_ids[i] = pairs;
  }

  // Writes block_expert from `offsets` [experts + 1], each expert's first slot: a search a block, so that no
  // thread writes a busy expert's blocks alone.
  __device__ void write_block_experts(const int32_t* offsets, int32_t thread, int32_t threads) const {
    const int32_t blocks = (capacity + block - 1) / block;
    const int32_t used = offsets[experts] / block;
    for (int32_t b = thread; b < blocks; b += threads) {
      block_expert[b] = b < used ? expert_at(offsets, b * block) : -1;
    }
  }

  // The expert whose run holds a slot below offsets[experts]: the last one that begins at it or before.
  __device__ int32_t expert_at(const int32_t* offsets, int32_t slot) const {
    int32_t low = 0;
    int32_t high = experts;
    while (high - low > 1) {
      const int32_t middle = (low + high) / 2;
      (offsets[middle] <= slot ? low : high) = middle;
    }
    return low;
  }
};

// Calls run(Problem<Id>) for the type of the ids.
template <class Run>
Status with_problem(const ty_align_args& args, Run&& run) {
  return args.ids_dtype == TY_INT64 ? run(Problem<int64_t>(args)) : run(Problem<int32_t>(args));
}

// Arrays one behind the other in a workspace. Without memory it only adds up.
class Layout {
 public:
  explicit Layout(void* memory = nullptr) : memory_(reinterpret_cast<uintptr_t>(memory)) {}

  template <class T>
  T* take(size_t count) {
    T* const array = reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return array;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 256;
  uintptr_t memory_;
  size_t bytes_ = 0;
};

inline Status to_status(const char* baseline, cudaError_t error) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // do not leave it for the next check
  return {TY_DEVICE_ERROR, text("baseline ", baseline, ": cannot launch: ", cudaGetErrorString(error))};
}

}  // namespace tokenyard::baselines
