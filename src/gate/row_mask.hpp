// Groups of any size that is a multiple of a chunk, by their highest value: those that are not kept lose
// theirs.
#pragma once

#include <cstdint>
#include <limits>

#include "gate/order.hpp"
#include "gate/router.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Each of a token's lanes holds one group at most.
template <class Shape, class Thread, class Logit>
TY_DEVICE void mask_groups(Thread& gpu, const Router<Logit>& router, int lane,
                           float (&value)[Shape::kItems]) {
  constexpr int kLanes = Shape::kLanes;
  constexpr int32_t kNone = std::numeric_limits<int32_t>::min();
  const int first_of_token = gpu.lane() - lane;
  const int groups = router.num_experts / router.group_size;
  int group[Shape::kChunks];
  int32_t best[Shape::kChunks];
#pragma unroll
  for (int c = 0; c < Shape::kChunks; ++c) {
    group[c] = Shape::first_of_chunk(lane, c) / router.group_size;
    float highest = -kInfinity;
#pragma unroll
    for (int i = 0; i < Shape::kChunk; ++i) highest = port::max(highest, value[c * Shape::kChunk + i]);
    best[c] = order_of(highest + 0.0f);  // zeros are equal, whatever their sign
  }
  // Eight at once, so that they do not wait for each other; beyond the last there are none.
  constexpr int kAtOnce = 8;
  static_assert(kLanes % kAtOnce == 0);
  int32_t own = kNone;
#pragma unroll 1
  for (int first = 0; first < groups; first += kAtOnce) {
#pragma unroll
    for (int g = first; g < first + kAtOnce; ++g) {
      int32_t highest = kNone;
#pragma unroll
      for (int c = 0; c < Shape::kChunks; ++c) {
        highest = group[c] == g ? port::max_of(highest, best[c]) : highest;
      }
      if constexpr (kLanes == Thread::warp_size) {
        highest = gpu.reduce_max(highest);
      } else {
        highest = port::lanes_max<kLanes>(gpu, highest);
      }
      own = lane == g ? highest : own;
    }
  }
  int before = 0;  // groups that win against this one: of equals the lower
#pragma unroll 1
  for (int first = 0; first < groups; first += kAtOnce) {
    bool wins[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int32_t other = gpu.shfl(own, first_of_token + first + i);
      wins[i] = other > own || (other == own && first + i < lane);
    }
    before += port::count_of(gpu, wins);
  }
  const auto kept = gpu.ballot(before < router.kept_groups) >> first_of_token;
#pragma unroll
  for (int c = 0; c < Shape::kChunks; ++c) {
    const bool is_kept = group[c] < groups && (kept >> group[c] & 1) != 0;
#pragma unroll
    for (int i = 0; i < Shape::kChunk; ++i) {
      float& own_value = value[c * Shape::kChunk + i];
      own_value = is_kept ? own_value : -kInfinity;
    }
  }
}

}  // namespace tokenyard::gate
