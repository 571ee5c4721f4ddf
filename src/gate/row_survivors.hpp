// Those of a row's experts that can be among the K best, from registers into shared memory.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "gate/row_bound.hpp"
#include "gate/row_shape.hpp"
#include "gate/row_values.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// In the shared memory of a block with so many tokens.
template <class Thread, class Shape, int kTokens>
struct RowShared {
  template <class T, int N>
  using array = typename Thread::template array<T, N>;
  array<typename Shape::Keys::Type, kTokens * Shape::kSlots> survivor;
  array<typename Shape::Keys::Type, kTokens * Shape::kMaxK> ranked;
  array<float, kTokens * Shape::kLanes * Shape::kParts> highest;
  array<float, kTokens * Shape::kMaxK> by_rank;
};

template <class Thread, class Shape, class Shared>
class RowSurvivors {
 public:
  using Keys = typename Shape::Keys;
  using Values = RowValues<Shape>;

  TY_DEVICE RowSurvivors(Thread& gpu, Shared& shared, int slot, int top_k)
      : gpu_(gpu), shared_(shared), slot_(slot), top_k_(top_k), lane_(gpu.lane() % kLanes) {}

  TY_DEVICE decltype(auto) key(int i) { return shared_.survivor(slot_ * Shape::kSlots + i); }

  // No K parts of lanes have anything above it, and K reach it.
  TY_DEVICE float sure_bound(const Values& values) {
    return bound_of_parts<Shape>(gpu_, values.item, top_k_, shared_.highest, slot_ * kLanes * Shape::kParts);
  }

  struct Kept {
    int count;       // at least K
    bool have_keys;  // else they are experts, see make_keys()
  };

  // Keeps what reaches the bound, in any order. Where a lane `takes_part` or not is of its group. A bound of
  // -inf says nothing.
  TY_DEVICE Kept keep(const Values& values, float bound, bool takes_part) {
    if constexpr (Shape::kByMask) {
      return keep_by_mask(values, bound, takes_part);
    } else {
      return keep_each(values, bound, takes_part);
    }
  }

  // Of experts, from memory, shared out anew among the lanes.
  TY_DEVICE void make_keys(const RowLoader<Shape>& loader, int kept) {
#pragma unroll 1
    for (int i = lane_; i < kept; i += kLanes) {
      const auto expert = static_cast<int32_t>(key(i));
      key(i) = Keys::of(loader.value_of(gpu_, expert), expert);
    }
    end_at(kept);
    gpu_.sync_warp();
  }

  // Ranks are counted in steps.
  TY_DEVICE void end_at(int kept) {
    if (lane_ < Shape::kStep) key(kept + lane_) = Keys::kNobody;
  }

 private:
  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kItems = Shape::kItems;

  struct Places {
    int before, all;
  };

  // Sums of a count over the token's lanes: those below, and all.
  TY_DEVICE Places places_of(int count) {
    if constexpr (kLanes == Thread::warp_size) {
      Places places{};
#pragma unroll
      for (int bit = 0; kItems >> bit != 0; ++bit) {
        const auto lanes = gpu_.ballot((count >> bit & 1) != 0);
        places.before += gpu_.popcount(lanes & gpu_.lanes_below()) << bit;
        places.all += gpu_.popcount(lanes) << bit;
      }
      return places;
    } else {
      int sum = count;
#pragma unroll
      for (int delta = 1; delta < kLanes; delta *= 2) {
        const int other = gpu_.shfl_up(sum, delta);
        if (lane_ >= delta) sum += other;
      }
      return {sum - count, gpu_.shfl(sum, gpu_.lane() - lane_ + kLanes - 1)};
    }
  }

  TY_DEVICE bool is_seldom(int count, float bound) {
    return gpu_.any(count < top_k_ || count > Shape::kMaxSurvivors || bound == -kInfinity);
  }

  // Each value is put somewhere, which is faster than a branch.
  TY_DEVICE Kept keep_each(const Values& values, float bound, bool takes_part) {
    const float own_bound = takes_part ? bound : std::numeric_limits<float>::quiet_NaN();  // none reaches it
    int count = 0;
#pragma unroll
    for (const float value : values.item) count += value >= own_bound;
    const Places places = places_of(count);
    if (is_seldom(places.all, bound)) {
      return {keep_few_equals(gpu_, shared_, slot_, top_k_, values, bound, takes_part), true};
    }
    int at = places.before;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const bool reaches = values.item[i] >= own_bound;
      put(values, reaches ? at : Shape::kUnused + lane_, i);
      at += reaches;
    }
    end_at(places.all);
    gpu_.sync_warp();
    return {places.all, true};
  }

  // Values are not NaN. The sign of a difference tells which are below: of 0 and -0 neither is.
  TY_DEVICE Kept keep_by_mask(const Values& values, float bound, bool takes_part) {
    const float own_bound = bound == 0 ? -0.0f : bound;
    uint32_t below = 0;
#pragma unroll
    for (int i = kItems - 1; i >= 0; --i) {
      below = below << 1 | std::bit_cast<uint32_t>(values.item[i] - own_bound) >> 31;
    }
    constexpr uint32_t kAll = static_cast<uint32_t>((uint64_t{1} << kItems) - 1);
    uint32_t survives = takes_part ? ~below & kAll : 0;
    const Places places = places_of(gpu_.popcount(survives));
    if (is_seldom(places.all, bound)) {
      return {keep_few_equals(gpu_, shared_, slot_, top_k_, values, bound, takes_part), true};
    }
    for (int at = places.before; survives != 0; survives &= survives - 1) {
      key(at++) = Shape::expert_of(lane_, gpu_.lowest(survives));
    }
    gpu_.sync_warp();
    return {places.all, false};
  }

  TY_DEVICE void put(const Values& values, int at, int item) {
    key(at) = Keys::of(values.item[item], Shape::expert_of(lane_, item));
  }

  // For any values: of the bound's equals only the first K, by a better bound where that is not few enough.
  static TY_DEVICE_SELDOM int keep_few_equals(Thread gpu, Shared& shared, int slot, int top_k, Values values,
                                              float bound, bool takes_part) {
    RowSurvivors row(gpu, shared, slot, top_k);
#pragma unroll
    for (float& value : values.item) value = takes_part ? port::max(value, -kInfinity) : -kInfinity;
    for (bool is_sure = false;; is_sure = true) {
      int above = 0, equal = 0;
#pragma unroll
      for (const float value : values.item) {
        above += value > bound;
        equal += value == bound;
      }
      const Places places = row.places_of(above);
      const int equals = row.places_of(equal).all;
      const int kept = places.all + port::min_of(equals, top_k);
      const bool fits = places.all + equals >= top_k && kept <= Shape::kMaxSurvivors;
      if (is_sure || !gpu.any(!fits)) {
        row.put_few_equals(values, bound, places);
        row.end_at(kept);
        gpu.sync_warp();
        return kept;
      }
      const float sure = row.sure_bound(values);
      if (!fits) bound = sure;
    }
  }

  TY_DEVICE void put_few_equals(const Values& values, float bound, Places above) {
    int equals[Shape::kChunks] = {};
#pragma unroll
    for (int i = 0; i < kItems; ++i) equals[i / Shape::kChunk] += values.item[i] == bound;
    int in_lane = 0;  // with groups
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) in_lane += equals[c];
    const int before_lane = places_of(in_lane).before;
    int at = above.before;
    int in_chunks = 0;  // without
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      int before = before_lane;
      if constexpr (Shape::kGrouped) {
#pragma unroll
        for (int other = 0; other < Shape::kChunks; ++other) {
          if (Shape::first_of_chunk(lane_, other) < Shape::first_of_chunk(lane_, c)) before += equals[other];
        }
      } else {
        const Places places = places_of(equals[c]);
        before = in_chunks + places.before;
        in_chunks += places.all;
      }
#pragma unroll
      for (int i = c * Shape::kChunk; i < (c + 1) * Shape::kChunk; ++i) {
        if (values.item[i] > bound) put(values, at++, i);
        if (values.item[i] != bound) continue;
        if (before < top_k_) put(values, above.all + before, i);
        ++before;
      }
    }
  }

  Thread& gpu_;
  Shared& shared_;
  const int slot_, top_k_, lane_;
};

}  // namespace tokenyard::gate
