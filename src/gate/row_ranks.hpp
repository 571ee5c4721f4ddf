// Survivors in the order of their keys.
#pragma once

#include <cstdint>

#include "gate/row_shape.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// How many of the next kCount keys are above this one.
template <int kCount, class Thread, class Array, class Key>
TY_DEVICE int count_above(Thread& gpu, Array& keys, int first, Key key) {
  using Pack = port::Pack<Key>;
  bool above[kCount];
#pragma unroll
  for (int i = 0; i < kCount; i += Pack::kItems) {
    const Pack others = gpu.load_pack(keys, first + i);
#pragma unroll
    for (int j = 0; j < Pack::kItems; ++j) above[i + j] = others.item[j] > key;
  }
  return port::count_of(gpu, above);
}

// However many there are. The first K go to `ranked`, by rank.
template <class Shape, class Thread, class Shared>
TY_DEVICE void rank_many(Thread& gpu, Shared& shared, int slot, int kept, int top_k) {
  using Key = typename Shape::Keys::Type;
#pragma unroll 1
  for (int i = gpu.lane() % Shape::kLanes; i < kept; i += Shape::kLanes) {
    const Key key = shared.survivor(slot * Shape::kSlots + i);
    int above = 0;
#pragma unroll 1
    for (int first = 0; first < kept; first += Shape::kStep) {
      above += count_above<Shape::kStep>(gpu, shared.survivor, slot * Shape::kSlots + first, key);
    }
    if (above < top_k) shared.ranked(slot * Shape::kMaxK + above) = key;
  }
  gpu.sync_warp();
}

// Eight lanes with two keys each: the eight highest of the sixteen, one a lane. Lanes 0 to 3 get ranks 0, 2,
// 4 and 6, lanes 7 to 4 those between. Bitonic merges of sorted lists that lie on 1, 2 and 4 lanes, the
// second reversed; of the last two lists, only their higher half.
template <class Thread>
TY_DEVICE uint32_t best_eight(Thread& gpu, uint32_t a, uint32_t b) {
  const int lane = gpu.lane() % 8;
  const auto pick = [](bool higher, uint32_t x, uint32_t y) { return (x > y) == higher ? x : y; };
  const auto sort_own = [&] {
    const uint32_t lower = pick(false, a, b);
    a = pick(true, a, b);
    b = lower;
  };
  // With the lane on the other side of the middle of `lanes` lanes, one list reversed.
  const auto merge = [&](int lanes) {
    const bool higher = (lane & lanes / 2) == 0;
    const uint32_t other_a = gpu.shfl_xor(a, lanes - 1);
    const uint32_t other_b = gpu.shfl_xor(b, lanes - 1);
    a = pick(higher, a, other_b);
    b = pick(higher, b, other_a);
  };
  sort_own();
  merge(2);
  sort_own();
  merge(4);
  const bool is_even = lane % 2 == 0;
  const uint32_t next_a = gpu.shfl_xor(a, 1);
  const uint32_t next_b = gpu.shfl_xor(b, 1);
  a = pick(is_even, a, next_a);
  b = pick(is_even, b, next_b);
  sort_own();
  uint32_t key = pick(true, a, gpu.shfl_xor(b, 7));
  const bool is_low = lane < 4;  // the lists run up in the lower lanes and down in the others
  key = pick(is_low == ((lane & 2) == 0), key, gpu.shfl_xor(key, 2));
  key = pick(is_low == is_even, key, gpu.shfl_xor(key, 1));
  return pick(is_low, key, gpu.shfl_xor(key, 7));
}

// Sixteen lanes with a key of each of two lists, both lane by lane with the highest first: the same of the
// sixteen highest. A bitonic merge.
template <class Thread>
TY_DEVICE uint32_t merge_lanes(Thread& gpu, uint32_t a, uint32_t b) {
  const int lane = gpu.lane() % 16;
  const uint32_t last_first = gpu.shfl_xor(b, 15);
  uint32_t key = a > last_first ? a : last_first;
#pragma unroll
  for (int mask = 8; mask > 0; mask /= 2) {
    const uint32_t other = gpu.shfl_xor(key, mask);
    key = (key > other) == ((lane & mask) == 0) ? key : other;
  }
  return key;
}

// By rank: what best_of_two() leaves to a lane, and the sum of values that lanes hold so, neighbours first.
template <int kLanes>
TY_DEVICE int32_t rank_of_lane(int lane) {
  if constexpr (kLanes == 8) return lane < 4 ? 2 * lane : 15 - 2 * lane;
  return lane;
}

template <int kLanes, class Thread>
TY_DEVICE float sum_of_ranks(Thread& gpu, float value) {
  if constexpr (kLanes == 8) {
    value += gpu.shfl_xor(value, 7);
    value += gpu.shfl_xor(value, 1);
    return value + gpu.shfl_xor(value, 2);
  } else {
    return port::lanes_tree_sum<kLanes>(gpu, value);
  }
}

}  // namespace tokenyard::gate
