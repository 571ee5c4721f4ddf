// Sums and scans over a warp and a block, written once over the port.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::port {

// Over the first kLanes lanes, if so many are enough.
template <int kLanes = 64, class Thread>
TY_DEVICE int32_t warp_inclusive_sum(Thread& gpu, int32_t value) {
#pragma unroll
  for (int delta = 1; delta < min_of(kLanes, Thread::warp_size); delta *= 2) {
    const int32_t below = gpu.shfl_up(value, delta);
    if (gpu.lane() >= delta) value += below;
  }
  return value;
}

struct ScanResult {
  int32_t before;  // sum of the values of the threads below; for holders alone
  int32_t total;   // sum of all
};

// Sum scan over the first kHolders threads of a block of kThreads; all must call it. `partial` holds one
// word per warp; between two calls that share it there must be a barrier.
template <int kThreads, int kHolders = kThreads, class Thread, class Partial>
TY_DEVICE ScanResult block_exclusive_sum(Thread& gpu, int32_t value, Partial& partial) {
  constexpr int kWarps = (kHolders + Thread::warp_size - 1) / Thread::warp_size;
  const bool holder = gpu.warp() < kWarps;
  int32_t inclusive = 0;
  if (holder) {
    inclusive = warp_inclusive_sum(gpu, value);
    if (gpu.lane() == Thread::warp_size - 1) partial(gpu.warp()) = inclusive;
  }
  gpu.sync_block();
  const int32_t sum = gpu.lane() < kWarps ? static_cast<int32_t>(partial(gpu.lane())) : 0;
  int32_t before = 0;
  if (holder) before = gpu.reduce_add(gpu.lane() < gpu.warp() ? sum : 0) + inclusive - value;
  return {before, gpu.reduce_add(sum)};
}

// The highest value of each kLanes neighbouring lanes, to all of them; where only the first `used` have one
// that matters, to these.
template <int kLanes, class Thread, class T>
TY_DEVICE T lanes_max(Thread& gpu, T value, int used = kLanes) {
#pragma unroll
  for (int mask = 1; mask < kLanes; mask *= 2) {
    if (mask >= used) break;
    const T other = gpu.shfl_xor(value, mask);
    value = other > value ? other : value;
  }
  return value;
}

// Likewise the sum, where the others have 0. Neighbours first: the same bits as any other way of adding
// neighbours.
template <int kLanes, class Thread>
TY_DEVICE float lanes_tree_sum(Thread& gpu, float value, int used = kLanes) {
#pragma unroll
  for (int mask = 1; mask < kLanes; mask *= 2) {
    if (mask >= used) break;
    value += gpu.shfl_xor(value, mask);
  }
  return value;
}

// The sum of kCount values, a power of two, neighbours first.
template <int kCount>
TY_DEVICE float tree_sum(const float* value) {
  if constexpr (kCount == 1) {
    return *value;
  } else {
    return tree_sum<kCount / 2>(value) + tree_sum<kCount / 2>(value + kCount / 2);
  }
}

// How many of up to 32 flags are set. As bits of a word: added up, each would wait for the one before.
template <int kCount, class Thread>
TY_DEVICE int count_of(Thread& gpu, const bool (&flag)[kCount]) {
  static_assert(kCount <= 32);
  uint32_t bits[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) bits[i] = flag[i] ? 1u << i : 0;
#pragma unroll
  for (int width = 1; width < kCount; width *= 2) {
#pragma unroll
    for (int i = 0; i + width < kCount; i += 2 * width) bits[i] |= bits[i + width];
  }
  return gpu.popcount(bits[0]);
}

// The same over lanes, each of which holds the values of positions lane, lane + kLanes, ...
template <int kLanes, int kSlots, class Thread>
TY_DEVICE float lanes_tree_sum(Thread& gpu, const float (&value)[kSlots], int used = kLanes) {
  float sum[kSlots];
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) sum[slot] = lanes_tree_sum<kLanes>(gpu, value[slot], used);
  return tree_sum<kSlots>(sum);
}

}  // namespace tokenyard::port
