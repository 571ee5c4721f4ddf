// Reading ids on the device: pair index -> expert to sort by, or -1 for a pair that is dropped.
#pragma once

#include <cstdint>

#include "align/contract.hpp"
#include "align/fast_divide.hpp"
#include "port/port.hpp"

namespace tokenyard::align {

// Whether pair p's id is the p-th in memory.
inline bool rows_touch(const Problem& problem) {
  return problem.row_stride == problem.top_k || problem.num_tokens <= 1;
}

// int32 from 0, rows without gaps, no map: what engines pass. A kernel for these alone is smaller and starts
// sooner.
class PlainIds {
 public:
  explicit PlainIds(const Problem& problem)
      : ids_(static_cast<const int32_t*>(problem.topk_ids)),
        num_experts_(problem.num_experts),
        aligned_(reinterpret_cast<uintptr_t>(problem.topk_ids) % sizeof(port::Vec4) == 0) {}

  static bool fit(const Problem& problem) {
    return !problem.ids_are_int64 && problem.expert_map == nullptr && problem.first_id == 0 &&
           rows_touch(problem);
  }

  // Loads the ids of pairs first + at, at = offset + i * step for i < rows <= kCount, as far as at < end; -1
  // beyond. Nothing waits for them before resolve(), which makes experts of them, or -1.
  template <int kCount>
  TY_DEVICE void load(int32_t first, int32_t offset, int32_t step, int32_t end, int32_t rows,
                      int32_t (&expert)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i >= rows) break;
      const int32_t at = offset + i * step;
      expert[i] = at < end ? ids_[first + at] : -1;
    }
  }
  // The same for pairs first, first + 1, … of one thread; first is a multiple of kCount.
  template <int kCount, class Thread>
  TY_DEVICE void load_run(Thread& gpu, int32_t first, int32_t end, int32_t (&expert)[kCount]) const {
    if constexpr (kCount % 4 == 0) {
      if (aligned_ && first + kCount <= end) {
#pragma unroll
        for (int i = 0; i < kCount; i += 4) {
          const port::Vec4 four = gpu.load4(ids_ + first + i);
          expert[i] = four.x;
          expert[i + 1] = four.y;
          expert[i + 2] = four.z;
          expert[i + 3] = four.w;
        }
        return;
      }
    }
    load<kCount>(0, first, 1, end, kCount, expert);
  }
  template <int kCount>
  TY_DEVICE void resolve(int32_t rows, int32_t (&expert)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i >= rows) break;
      if (static_cast<uint32_t>(expert[i]) >= static_cast<uint32_t>(num_experts_)) expert[i] = -1;
    }
  }

 private:
  const int32_t* ids_;
  int32_t num_experts_;
  bool aligned_;
};

class AnyIds {
 public:
  explicit AnyIds(const Problem& problem)
      : ids_(problem.topk_ids),
        map_(problem.expert_map),
        row_stride_(problem.row_stride),
        top_k_(problem.top_k),
        first_id_(problem.first_id),
        num_experts_(problem.num_experts),
        num_local_experts_(problem.num_local_experts),
        wide_(problem.ids_are_int64),
        flat_(wide_ && rows_touch(problem) &&
              reinterpret_cast<uintptr_t>(problem.topk_ids) % sizeof(port::Vec4) == 0) {}

  // As PlainIds.
  template <int kCount>
  TY_DEVICE void load(int32_t first, int32_t offset, int32_t step, int32_t end, int32_t rows,
                      int32_t (&expert)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i >= rows) break;
      const int32_t at = offset + i * step;
      expert[i] = at < end ? global_expert(first + at) : -1;
    }
  }
  template <int kCount, class Thread>
  TY_DEVICE void load_run(Thread& gpu, int32_t first, int32_t end, int32_t (&expert)[kCount]) const {
    if (flat_ && first + kCount <= end) {
      const auto* const ids = static_cast<const int64_t*>(ids_) + first;
      if constexpr (kCount % 2 == 0) {
#pragma unroll
        for (int i = 0; i < kCount; i += 2) {
          const port::Vec4 two = gpu.load4(reinterpret_cast<const int32_t*>(ids + i));
          expert[i] = expert_of(joined(two.x, two.y));
          expert[i + 1] = expert_of(joined(two.z, two.w));
        }
      } else {
#pragma unroll
        for (int i = 0; i < kCount; ++i) expert[i] = expert_of(ids[i]);
      }
      return;
    }
    load<kCount>(0, first, 1, end, kCount, expert);
  }
  template <int kCount>
  TY_DEVICE void resolve(int32_t rows, int32_t (&expert)[kCount]) const {
    if (map_ == nullptr) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i >= rows) break;
      expert[i] = expert[i] >= 0 ? local_expert(expert[i]) : -1;
    }
  }

 private:
  TY_DEVICE int32_t global_expert(int32_t pair) const {
    const int32_t token = top_k_.floor(pair);
    const int64_t at = token * row_stride_ + (pair - token * top_k_.divisor());
    const int64_t id = wide_ ? static_cast<const int64_t*>(ids_)[at] : static_cast<const int32_t*>(ids_)[at];
    return expert_of(id);
  }
  TY_DEVICE int32_t expert_of(int64_t id) const {
    const uint64_t expert = static_cast<uint64_t>(id) - static_cast<uint64_t>(first_id_);
    return expert < static_cast<uint64_t>(num_experts_) ? static_cast<int32_t>(expert) : -1;
  }
  static TY_DEVICE int64_t joined(int32_t low, int32_t high) {
    return static_cast<int64_t>(static_cast<uint64_t>(high) << 32 | static_cast<uint32_t>(low));
  }
  TY_DEVICE int32_t local_expert(int32_t expert) const {
    const int32_t local = map_[expert];
    return local >= 0 && local < num_local_experts_ ? local : -1;
  }

  const void* ids_;
  const int32_t* map_;
  int64_t row_stride_;
  FastDivide top_k_;
  int64_t first_id_;
  int32_t num_experts_;
  int32_t num_local_experts_;
  bool wide_;
  bool flat_;  // int64 in rows without gaps, of which two may be read at once
};

}  // namespace tokenyard::align
