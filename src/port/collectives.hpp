// Sums and scans over a warp and a block, written once over the port.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::port {

template <class Thread>
TY_DEVICE int32_t warp_inclusive_sum(Thread& gpu, int32_t value) {
#pragma unroll
  for (int delta = 1; delta < Thread::warp_size; delta *= 2) {
    const int32_t below = gpu.shfl_up(value, delta);
    if (gpu.lane() >= delta) value += below;
  }
  return value;
}

struct ScanResult {
  int32_t before;  // sum of the values of the threads below
  int32_t total;   // sum of all
};

// Sum scan over a block of kThreads. `partial` holds one word per warp; between two calls that share it
// there must be a barrier.
template <int kThreads, class Thread, class Partial>
TY_DEVICE ScanResult block_exclusive_sum(Thread& gpu, int32_t value, Partial& partial) {
  constexpr int kWarps = kThreads / Thread::warp_size;
  const int32_t inclusive = warp_inclusive_sum(gpu, value);
  if (gpu.lane() == Thread::warp_size - 1) partial(gpu.warp()) = inclusive;
  gpu.sync_block();
  const int32_t sum = gpu.lane() < kWarps ? static_cast<int32_t>(partial(gpu.lane())) : 0;
  const int32_t before = gpu.reduce_add(gpu.lane() < gpu.warp() ? sum : 0);
  return {before + inclusive - value, gpu.reduce_add(sum)};
}

}  // namespace tokenyard::port
