// Rows of logits and of their gradients in the registers of a warp, or of all warps of a block: each lane has
// kItems neighbouring experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "gate/score.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::training {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T, int kItems>
struct Pack {
  static constexpr int kCount = port::min_of(kItems, static_cast<int>(16 / sizeof(T)));
  struct alignas(kCount * sizeof(T)) Items {
    T item[kCount];
  };
};

// An array of rows, of logits or of their gradients. The type is a number, not a template's parameter: a
// branch for each row is nothing, three times as many kernels are.
struct Rows {
  const void* data;
  ty_dtype dtype;
  int64_t stride;
  int32_t columns;
  bool takes_packs;  // lanes may load and store up to 16 bytes at once

  Rows(const void* data, ty_dtype dtype, int64_t stride, int32_t columns)
      : data(data), dtype(dtype), stride(stride), columns(columns) {
    const int64_t element = dtype == TY_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
    takes_packs = reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * element % 16 == 0 &&
                  columns * element % 16 == 0;
  }

  TY_DEVICE float item(int64_t row, int32_t column) const {
    const int64_t at = row * stride + column;
    switch (dtype) {
      case TY_BFLOAT16:
        return port::to_float(static_cast<const port::bfloat16*>(data)[at]);
      case TY_FLOAT16:
        return port::to_float(static_cast<const port::float16*>(data)[at]);
      default:
        return static_cast<const float*>(data)[at];
    }
  }

  // The lane's items from `first` on; NaN, which counts for nothing, where the row has ended.
  template <int kItems>
  TY_DEVICE void load(int64_t row, int32_t first, float (&items)[kItems]) const {
    switch (dtype) {
      case TY_BFLOAT16:
        return load_as<port::bfloat16>(row, first, items);
      case TY_FLOAT16:
        return load_as<port::float16>(row, first, items);
      default:
        return load_as<float>(row, first, items);
    }
  }

  template <int kItems>
  TY_DEVICE void store(int64_t row, int32_t first, const float (&items)[kItems]) const {
    switch (dtype) {
      case TY_BFLOAT16:
        return store_as<port::bfloat16>(row, first, items);
      case TY_FLOAT16:
        return store_as<port::float16>(row, first, items);
      default:
        return store_as<float>(row, first, items);
    }
  }

  TY_DEVICE void store_item(int64_t row, int32_t column, float item) const {
    const int64_t at = row * stride + column;
    switch (dtype) {
      case TY_BFLOAT16:
        place<port::bfloat16>(at)[0] = port::round_to<port::bfloat16>(item);
        break;
      case TY_FLOAT16:
        place<port::float16>(at)[0] = port::round_to<port::float16>(item);
        break;
      default:
        place<float>(at)[0] = item;
    }
  }

  // Writes zeros to whole rows, which lie side by side, as one of some lanes.
  TY_DEVICE void clear(int64_t first, int64_t end, int lane, int lanes) const {
    const int64_t items = (end - first) * stride;
    if (takes_packs) {
      const bool is_wide = dtype == TY_FLOAT32;
      auto* const to = reinterpret_cast<port::Vec4*>(
          is_wide ? static_cast<void*>(place<float>(first * stride)) : place<uint16_t>(first * stride));
      for (int64_t i = lane; i < items / (is_wide ? 4 : 8); i += lanes) to[i] = port::Vec4{0, 0, 0, 0};
    } else if (dtype == TY_FLOAT32) {
      for (int64_t i = lane; i < items; i += lanes) place<float>(first * stride)[i] = 0;
    } else {
      for (int64_t i = lane; i < items; i += lanes) place<uint16_t>(first * stride)[i] = 0;
    }
  }

 private:
  template <class T>
  TY_DEVICE T* place(int64_t at) const {
    return static_cast<T*>(const_cast<void*>(data)) + at;
  }

  template <class T, int kItems>
  TY_DEVICE void load_as(int64_t row, int32_t first, float (&items)[kItems]) const {
    constexpr int kPack = Pack<T, kItems>::kCount;
    using Items = typename Pack<T, kItems>::Items;
    const T* const from = place<T>(row * stride + first);
#pragma unroll
    for (int i = 0; i < kItems; i += kPack) {
      if (takes_packs && first + i < columns) {
        const Items pack = *reinterpret_cast<const Items*>(from + i);
#pragma unroll
        for (int j = 0; j < kPack; ++j) items[i + j] = port::to_float(pack.item[j]);
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          items[i + j] = first + i + j < columns ? port::to_float(from[i + j]) : kNan;
        }
      }
    }
  }

  template <class T, int kItems>
  TY_DEVICE void store_as(int64_t row, int32_t first, const float (&items)[kItems]) const {
    constexpr int kPack = Pack<T, kItems>::kCount;
    using Items = typename Pack<T, kItems>::Items;
    T* const to = place<T>(row * stride + first);
#pragma unroll
    for (int i = 0; i < kItems; i += kPack) {
      if (takes_packs && first + i < columns) {
        Items pack;
#pragma unroll
        for (int j = 0; j < kPack; ++j) pack.item[j] = port::round_to<T>(items[i + j]);
        *reinterpret_cast<Items*>(to + i) = pack;
      } else {
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          if (first + i + j < columns) to[i + j] = port::round_to<T>(items[i + j]);
        }
      }
    }
  }
};

// The lanes that share a row: of one warp, or of all kWarps of a block. Sums add neighbours first, so that
// both give the same bits; all lanes get the result.
template <class Thread, int kWarps>
class Team {
 public:
  static constexpr int kLanes = kWarps * Thread::warp_size;
  // Two in turn: nobody writes to one before all have read what it held.
  using Partial = typename Thread::template array<float, 2 * kWarps>;

  TY_DEVICE Team(Thread& gpu, Partial& partial) : gpu_(gpu), partial_(partial) {}

  TY_DEVICE int lane() const { return kWarps == 1 ? gpu_.lane() : gpu_.thread(); }
  TY_DEVICE bool is_first_warp() const { return kWarps == 1 || gpu_.warp() == 0; }

  TY_DEVICE float sum(float value) {
    value = port::lanes_tree_sum<Thread::warp_size>(gpu_, value);
    if constexpr (kWarps > 1) {
      value = port::lanes_tree_sum<Thread::warp_size>(gpu_, of_warps(value, 0), kWarps);
      value = gpu_.shfl(value, 0);
    }
    return value;
  }

  TY_DEVICE float max(float value) {
    value = port::lanes_max<Thread::warp_size>(gpu_, value);
    if constexpr (kWarps > 1) {
      value = port::lanes_max<Thread::warp_size>(gpu_, of_warps(value, -gate::kInfinity), kWarps);
      value = gpu_.shfl(value, 0);
    }
    return value;
  }

  TY_DEVICE void sync() {
    if constexpr (kWarps == 1) {
      gpu_.sync_warp();
    } else {
      gpu_.sync_block();
    }
  }

 private:
  // Lane w gets warp w's value.
  TY_DEVICE float of_warps(float value, float otherwise) {
    if (gpu_.lane() == 0) partial_(turn_ * kWarps + gpu_.warp()) = value;
    gpu_.sync_block();
    value = gpu_.lane() < kWarps ? static_cast<float>(partial_(turn_ * kWarps + gpu_.lane())) : otherwise;
    turn_ = 1 - turn_;
    return value;
  }

  Thread& gpu_;
  Partial& partial_;
  int turn_ = 0;
};

}  // namespace tokenyard::training
