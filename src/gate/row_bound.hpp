// Bounds that at least K values of a row reach, found without sorting the row.
#pragma once

#include <cstdint>

#include "gate/order.hpp"
#include "gate/row_groups.hpp"
#include "gate/row_shape.hpp"
#include "gate/sort.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

template <int kCount>
TY_DEVICE float highest_of(const float* value) {
  if constexpr (kCount == 1) {
    return *value;
  } else {
    return port::max(highest_of<kCount / 2>(value), highest_of<kCount / 2>(value + kCount / 2));
  }
}

// NaN where one of the values is.
template <int kCount>
TY_DEVICE float highest_or_nan(const float* value) {
  if constexpr (kCount == 1) {
    return *value;
  } else {
    return port::max_or_nan(highest_or_nan<kCount / 2>(value),
                            highest_or_nan<kCount / 2>(value + kCount / 2));
  }
}

template <int kLanes, class Thread>
TY_DEVICE float lanes_min(Thread& gpu, float value) {
  if constexpr (kLanes == Thread::warp_size) {
    return of_order(~gpu.reduce_max(~order_of(value)));
  } else {
#pragma unroll
    for (int mask = 1; mask < kLanes; mask *= 2) value = port::min(value, gpu.shfl_xor(value, mask));
    return value;
  }
}

// NaN counts as -inf.
template <int kLanes, class Thread>
TY_DEVICE float lanes_highest(Thread& gpu, float value) {
  value = port::max(value, -kInfinity);
  if constexpr (kLanes == Thread::warp_size) {
    return of_order(gpu.reduce_max(order_of(value)));
  } else {
    return port::lanes_max<kLanes>(gpu, value);
  }
}

// Narrow lanes: the four best of the parts of as many lanes as leave K of them in all, and of these fours the
// lowest. Loose where a few lanes hold all that is high.
template <class Shape, class Thread>
TY_DEVICE float quick_bound(Thread& gpu, const float (&best_of_part)[4], int top_k) {
  float best[4];
#pragma unroll
  for (int part = 0; part < 4; ++part) best[part] = best_of_part[part];
  put_higher_first(best[0], best[1]);
  put_higher_first(best[2], best[3]);
  put_higher_first(best[0], best[2]);
  put_higher_first(best[1], best[3]);
  put_higher_first(best[1], best[2]);
  float lowest = best[3];
#pragma unroll
  for (int mask = 1; mask < Shape::kLanes; mask *= 2) {
    if (4 * Shape::kLanes / (2 * mask) >= top_k) {
      float other[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) other[i] = gpu.shfl_xor(best[3 - i], mask);
#pragma unroll
      for (int i = 0; i < 4; ++i) best[i] = port::max(best[i], other[i]);
      put_higher_first(best[0], best[2]);
      put_higher_first(best[1], best[3]);
      put_higher_first(best[0], best[1]);
      put_higher_first(best[2], best[3]);
      lowest = best[3];
    } else {
      lowest = port::min(lowest, gpu.shfl_xor(lowest, mask));
    }
  }
  return lowest;
}

// Narrow lanes, of eight groups: the kept ones two by two, of each two the fourth best, and of these the
// lowest. Twice as many values as groups are kept reach it, at least. `highest` as below.
template <class Shape, class Thread, class Array>
TY_DEVICE float bound_of_groups(Thread& gpu, GroupOfLane group, const FourBest& four, int kept_groups,
                                Array& highest, int first) {
  constexpr int kLanesOfGroup = Shape::kLanes / 8;
  const int lane = gpu.lane() % Shape::kLanes;
  if (group.is_kept && lane % kLanesOfGroup == 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) highest(first + 4 * group.before + i) = four.best[i];
  }
  gpu.sync_warp();
  const int own = 2 * (lane % 4) < kept_groups ? 2 * (lane % 4) : 0;
  const bool has_next = own + 1 < kept_groups;
  const port::Pack<float> a = gpu.load_pack(highest, first + 4 * own);
  const port::Pack<float> b = gpu.load_pack(highest, first + 4 * (has_next ? own + 1 : own));
  float lowest = kInfinity;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    lowest = port::min(lowest, has_next ? port::max(a.item[i], b.item[3 - i]) : a.item[i]);
  }
  lowest = port::min(lowest, gpu.shfl_xor(lowest, 1));
  return port::min(lowest, gpu.shfl_xor(lowest, 2));
}

// The K-th highest of the parts' best, by counting: no K parts have anything above it. `highest` is the
// token's place in shared memory, from `first` on.
template <class Shape, class Thread, class Array>
TY_DEVICE float bound_of_parts(Thread& gpu, const float (&best)[Shape::kParts], int top_k, Array& highest,
                               int first) {
  constexpr int kAll = Shape::kLanes * Shape::kParts;
  const int lane = gpu.lane() % Shape::kLanes;
#pragma unroll
  for (int part = 0; part < Shape::kParts; ++part) highest(first + part * Shape::kLanes + lane) = best[part];
  gpu.sync_warp();
  int before[Shape::kParts] = {};
  constexpr int kAtOnce = Shape::kWide ? 8 : 4;
  [[maybe_unused]] constexpr int kUnrolled = Shape::kWide ? kAll / kAtOnce : 1;  // narrow: seldom
#pragma unroll kUnrolled
  for (int i = 0; i < kAll; i += kAtOnce) {
    bool wins[Shape::kParts][kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; j += 4) {
      const port::Pack<float> others = gpu.load_pack(highest, first + i + j);
#pragma unroll
      for (int part = 0; part < Shape::kParts; ++part) {
#pragma unroll
        for (int k = 0; k < 4; ++k) wins[part][j + k] = others.item[k] > best[part];
      }
    }
#pragma unroll
    for (int part = 0; part < Shape::kParts; ++part) before[part] += port::count_of(gpu, wins[part]);
  }
  float lowest = kInfinity;
#pragma unroll
  for (int part = 0; part < Shape::kParts; ++part) {
    if (before[part] < top_k) lowest = port::min(lowest, best[part]);
  }
  return lanes_min<Shape::kLanes>(gpu, lowest);
}

}  // namespace tokenyard::gate
