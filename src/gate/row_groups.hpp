// Which groups of a row are kept, told by the lanes that hold them.
#pragma once

#include <bit>
#include <cstdint>

#include "gate/order.hpp"
#include "gate/router.hpp"
#include "gate/row_shape.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// The two highest of some values, as far as there are two. The best is NaN where one of the values is.
struct TwoBest {
  float best, second;
};

// Of values that are not NaN, the highest first.
struct FourBest {
  float best[4];
};

TY_DEVICE FourBest both(TwoBest a, TwoBest b) {
  const float low = port::min(a.best, b.best);
  const float high = port::max(a.second, b.second);
  return {
      {port::max(a.best, b.best), port::max(low, high), port::min(low, high), port::min(a.second, b.second)}};
}

TY_DEVICE TwoBest merged(TwoBest a, TwoBest b) {
  return {port::max_or_nan(a.best, b.best),
          port::max(port::min(a.best, b.best), port::max(a.second, b.second))};
}

template <int kCount>
TY_DEVICE TwoBest two_best(const float* value) {
  if constexpr (kCount == 1) {
    return {value[0], -kInfinity};
  } else if constexpr (kCount == 2) {
    return {port::max_or_nan(value[0], value[1]), port::min(value[0], value[1])};
  } else {
    return merged(two_best<kCount / 2>(value), two_best<kCount / 2>(value + kCount / 2));
  }
}

template <class Shape, class Logit>
TY_DEVICE int lanes_of_group(const Router<Logit>& router) {
  return Shape::kGrouping == Grouping::kEight ? Shape::kLanes / 8 : router.group_size / Shape::kItems;
}

// From those of each lane to those of its group.
template <class Shape, class Thread>
TY_DEVICE TwoBest two_best_of_lanes(Thread& gpu, int lanes, TwoBest two) {
#pragma unroll
  for (int mask = 1; mask < Shape::kLanes; mask *= 2) {
    if (mask >= lanes) break;
    two = merged(two, {gpu.shfl_xor(two.best, mask), gpu.shfl_xor(two.second, mask)});
  }
  return two;
}

struct GroupOfLane {
  int before;  // groups that win against it
  bool is_kept;
};

template <class Shape, class Thread, class Logit>
TY_DEVICE GroupOfLane choose_group(Thread& gpu, const Router<Logit>& router, float best, float second) {
  constexpr int kLanes = Shape::kLanes;
  const int lane = gpu.lane() % kLanes;
  const int lanes = lanes_of_group<Shape>(router);
  // Zeros are equal, whatever their sign.
  const int32_t value =
      order_of((router.group_score == TY_GATE_GROUP_TOP2 ? sum_of_two(best, second) : best) + 0.0f);
  int before = 0;
  if constexpr (Shape::kIsFull && kLanes <= 16) {
    const int group = lane / (kLanes / 8);
    bool wins[8] = {};
#pragma unroll
    for (int mask = 1; mask < 8; ++mask) {
      // Of equals the lower wins: the one without the highest bit that they differ in.
      const int bit = mask < 2 ? 0 : mask < 4 ? 1 : 2;
      wins[mask] = gpu.shfl_xor(value, mask * kLanes / 8) > value - (group >> bit & 1);
    }
    before = port::count_of(gpu, wins);
  } else {
    // Each lane of a group compares it with one of the next `lanes` groups.
    using Lanes = typename Thread::lane_mask;
    const int first_of_token = gpu.lane() - lane;
    const int first_of_group = lane & -lanes;
    const Lanes members = ((Lanes{1} << (lanes - 1) << 1) - 1) << (first_of_token + first_of_group);
    const auto compare = [&](int others, int end) {
      const int other_first = others + (lane - first_of_group) * lanes;
      const bool there = Shape::kIsFull || other_first < end;
      const int32_t other = gpu.shfl(value, first_of_token + (there ? other_first : 0));
      const bool wins = there && other > value - (other_first < first_of_group ? 1 : 0);
      before += gpu.popcount(gpu.ballot(wins) & members);
    };
    if constexpr (Shape::kIsFull) {
#pragma unroll
      for (int others = 0; others < kLanes; others += kLanes * kLanes / 64) compare(others, kLanes);
    } else {
      const int used = router.num_experts / Shape::kItems;
      for (int others = 0; others < used; others += lanes * lanes) compare(others, used);
    }
  }
  return {before, before < router.kept_groups};
}

}  // namespace tokenyard::gate
