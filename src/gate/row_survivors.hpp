// Those of a row's experts that can be among the K best, from registers into shared memory.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gate/router.hpp"
#include "gate/row_bound.hpp"
#include "gate/row_groups.hpp"
#include "gate/row_key.hpp"
#include "gate/row_ranks.hpp"
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
  array<typename Shape::Keys::Type, kTokens * Shape::kSlots> survivor;          // keys, or cells
  array<uint16_t, Shape::kByMask ? kTokens * Shape::kMaxSurvivors : 8> expert;  // of the survivors
  array<uint32_t, Shape::kByCount ? kTokens * Shape::kLanes : 4> key;
  array<typename Shape::Keys::Type, kTokens * Shape::kMaxK> ranked;
  array<float, kTokens * Shape::kLanes * Shape::kParts> highest;
  array<float, Shape::kByCount ? kTokens * Shape::kMaxK : 4> by_rank;
};

template <class Thread, class Shape, class Shared>
class RowSurvivors {
 public:
  using Logit = typename Shape::Logit;
  using Keys = typename Shape::Keys;
  using Values = RowValues<Shape>;

  TY_DEVICE RowSurvivors(Thread& gpu, Shared& shared, int slot, int top_k, int lane)
      : gpu_(gpu), shared_(shared), slot_(slot), top_k_(top_k), lane_(lane) {}

  // Of the i-th survivor, as it was kept.
  TY_DEVICE int32_t expert(int i) {
    if constexpr (Shape::kByMask) {
      return static_cast<uint16_t>(shared_.expert(slot_ * Shape::kMaxSurvivors + i));
    } else {
      return Cell::expert(key(i));
    }
  }

  // The same in one word, nobody beyond the last. Where they were kept by mask, also the logit, which had to
  // be read.
  struct Survivor {
    uint32_t key;  // 0: nobody
    bool is_far;   // and has no key
    int32_t expert;
    float logit;
  };
  TY_DEVICE Survivor survivor(const RowLoader<Shape>& loader, int i, int kept, float bound) {
    const bool is_there = i < kept;
    float value, logit = 0;
    int32_t expert = 0;
    if constexpr (Shape::kByMask) {
      if (is_there) expert = this->expert(i);
      logit = loader.logit_of(expert);
      value = loader.value_of(gpu_, logit, expert);
    } else {
      const Key cell = is_there ? static_cast<Key>(key(i)) : Keys::kNobody;
      if constexpr (Keys::kShort) return {static_cast<uint32_t>(cell), false, 0, 0};
      expert = Cell::expert(cell);
      value = Cell::value(cell);
    }
    ShortKey own;
    if constexpr (Keys::kShort) {
      own = {static_cast<uint32_t>(Keys::of(value, expert)), false};
    } else {
      constexpr float kZero = Shape::kBiased ? -0.0f : 0.0f;  // -0 equals 0; no score and bias add up to -0
      own = Shape::Short::of(value + kZero, bound + kZero, expert);
    }
    // Taken from memory, a value may be NaN that load() has put right.
    const bool is_nan = Shape::kByMask && Shape::kBiased && value != value;
    return {is_there ? own.key : 0, is_there && (own.is_far || is_nan), expert, logit};
  }

  // Before any are kept.
  TY_DEVICE void clear() {
    if constexpr (kCellsAreKeys) key(lane_) = Keys::kNobody;
  }

  // For count_above(): one key of each lane.
  TY_DEVICE void show(uint32_t own) {
    if constexpr (!kCellsAreKeys) {
      shared_.key(slot_ * kLanes + lane_) = own;
      gpu_.sync_warp();
    }
  }

  // How many of the next kCount keys are above this one.
  template <int kCount>
  TY_DEVICE int count_above(int first, uint32_t own) {
    if constexpr (kCellsAreKeys) {
      return gate::count_above<kCount>(gpu_, shared_.survivor, slot_ * Shape::kSlots + first,
                                       static_cast<Key>(own));
    } else {
      return gate::count_above<kCount>(gpu_, shared_.key, slot_ * kLanes + first, own);
    }
  }

  // Of the keys of all lanes.
  TY_DEVICE int rank_of(uint32_t own) {
    show(own);
    return count_above<kLanes>(0, own);
  }

  // No K parts of lanes have anything above it, and K reach it.
  TY_DEVICE float sure_bound(const float (&best_of_part)[Shape::kParts]) {
    return bound_of_parts<Shape>(gpu_, best_of_part, top_k_, shared_.highest, slot_ * kLanes * Shape::kParts);
  }

  TY_DEVICE float bound_of_groups(GroupOfLane group, const FourBest& four, int kept_groups) {
    return gate::bound_of_groups<Shape>(gpu_, group, four, kept_groups, shared_.highest,
                                        slot_ * kLanes * Shape::kParts);
  }

  // Narrow, each lane with two keys: the highest of them all, one a lane. See rank_of_lane().
  TY_DEVICE uint32_t best_of_two(uint32_t a, uint32_t b) {
    if constexpr (Shape::kByCount) {
      a = sorted(a);
      return gpu_.any(b != 0) ? merge_lanes(gpu_, a, sorted(b)) : a;
    } else {
      return best_eight(gpu_, a, b);
    }
  }

  struct Kept {
    int count;
    bool are_ranked;       // in memory; else they are as expert() and short_key() want them
    bool is_right;         // K at least, and no more than can be ranked at once; to be asked of all lanes
    bool is_void = false;  // none were looked for: all values are -inf
  };

  // Whether all values are -inf: then the first K experts are chosen. Of values that are not NaN.
  TY_DEVICE bool is_void(const Values& values) {
    using Lanes = typename Thread::lane_mask;
    const Lanes others = gpu_.ballot(highest_of<kItems>(values.item) > -kInfinity);
    if constexpr (kLanes == Thread::warp_size) return others == 0;
    constexpr Lanes kToken = (Lanes{1} << (kLanes - 1) << 1) - 1;
    return (others >> (gpu_.lane() - lane_) & kToken) == 0;
  }

  // Keeps what reaches the bound, in any order. Where a lane `takes_part` or not is of its group. A bound of
  // -inf says nothing.
  TY_DEVICE Kept keep(const Router<Logit>& router, const Logit* row, const Values& values, float bound,
                      bool takes_part) {
    if constexpr (Shape::kByMask) {
      return keep_by_mask(router, row, values, bound, takes_part);
    } else {
      return keep_each(values, bound, takes_part);
    }
  }

  // The best of a row whose survivors were not right, ranked.
  TY_DEVICE Kept keep_again(const Router<Logit>& router, const Logit* row, const Values& values, float bound,
                            bool takes_part) {
    rank_again(gpu_, router, row, shared_, slot_, values, bound, takes_part);
    return {top_k_, true, true};
  }

  // Ranks survivors that are right, however far apart they are.
  static TY_DEVICE_SELDOM void rank_far(Thread gpu, const Router<Logit>& router, const Logit* row,
                                        Shared& shared, int slot, int kept) {
    RowSurvivors survivors(gpu, shared, slot, router.top_k, gpu.lane() % kLanes);
    const RowLoader<Shape> loader(router, row, survivors.lane_);
#pragma unroll 1
    for (int i = survivors.lane_; i < kept; i += kLanes) {
      const int32_t expert = survivors.expert(i);
      survivors.key(i) = Keys::of(loader.safe_value_of(gpu, expert), expert);
    }
    survivors.rank_keys(kept);
  }

  // Ranks a row whose survivors were not right, whatever its values. Those above the bound have keys; of its
  // equals the first K follow in the order of their ids, and need none. By a better bound where those are too
  // few, or too many are above.
  static TY_DEVICE_SELDOM void rank_again(Thread gpu, const Router<Logit>& router, const Logit* row,
                                          Shared& shared, int slot, Values values, float bound,
                                          bool takes_part) {
    RowSurvivors survivors(gpu, shared, slot, router.top_k, gpu.lane() % kLanes);
#pragma unroll
    for (float& value : values.item) value = takes_part ? value : -kInfinity;
    for (bool is_sure = false;; is_sure = true) {
      uint32_t above = 0, equal = 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        above |= (values.item[i] > bound ? 1u : 0u) << i;
        equal |= (values.item[i] == bound ? 1u : 0u) << i;
      }
      const Places places = survivors.places_of(gpu.popcount(above));
      const int equals = survivors.places_of(gpu.popcount(equal)).all;
      const bool fits =
          places.all <= (router.top_k - 1) * Shape::kPart && places.all + equals >= router.top_k;
      if (is_sure || !gpu.any(!fits)) {
        survivors.put_above(RowLoader<Shape>(router, row, survivors.lane_), above, places.before);
        survivors.rank_equals(equal, bound, places.all);
        survivors.rank_keys(places.all);
        return;
      }
      float best[Shape::kParts];
#pragma unroll
      for (int part = 0; part < Shape::kParts; ++part) {
        best[part] = highest_of<Shape::kPart>(values.item + part * Shape::kPart);
      }
      gpu.sync_warp();  // others may still read what the last bound was made of
      const float sure = survivors.sure_bound(best);
      if (!fits) bound = sure;
    }
  }

 private:
  using Key = typename Keys::Type;
  static constexpr bool kCellsAreKeys = Keys::kShort && !Shape::kByMask;
  using Cell = std::conditional_t<Keys::kShort, Keys, RowCell>;

  // Of the first lanes, which have keys, the highest first.
  TY_DEVICE uint32_t sorted(uint32_t own) {
    gpu_.sync_warp();  // others may still read the last ones
    const int rank = rank_of(own);
    gpu_.sync_warp();
    shared_.key(slot_ * kLanes + (own != 0 ? rank : lane_)) = own;
    gpu_.sync_warp();
    return shared_.key(slot_ * kLanes + lane_);
  }

  TY_DEVICE decltype(auto) key(int i) { return shared_.survivor(slot_ * Shape::kSlots + i); }

  // So many keys, counted in steps.
  TY_DEVICE void rank_keys(int kept) {
    if (lane_ < Shape::kStep) key(kept + lane_) = Keys::kNobody;
    gpu_.sync_warp();
    rank_many<Shape>(gpu_, shared_, slot_, kept, top_k_);
  }

  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kItems = Shape::kItems;

  struct Places {
    int before, all;
  };

  // Sums of a count over the token's lanes: those below, and all.
  TY_DEVICE Places places_of(int count) {
    if constexpr (kLanes == Thread::warp_size) {
      Places places{0, gpu_.reduce_add(count)};
#pragma unroll
      for (int bit = 0; kItems >> bit != 0; ++bit) {
        const auto lanes = gpu_.ballot((count >> bit & 1) != 0);
        places.before += gpu_.popcount(lanes & gpu_.lanes_below()) << bit;
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

  // More survivors than that take longer than to choose among equals.
  static constexpr int kMany =
      Shape::kWide ? port::min_of(kLanes, Shape::kMaxSurvivors) : Shape::kMaxSurvivors;

  TY_DEVICE bool is_right(int count, float bound) {
    return count >= top_k_ && count <= kMany && bound != -kInfinity;
  }

  // Each value is put somewhere, which is faster than a branch. There is room for all, so that whether they
  // are right can be asked later, with what else may be wrong.
  TY_DEVICE Kept keep_each(const Values& values, float bound, bool takes_part) {
    const float own_bound = takes_part ? bound : std::numeric_limits<float>::quiet_NaN();  // none reaches it
    int count = 0;
#pragma unroll
    for (const float value : values.item) count += value >= own_bound;
    const Places places = places_of(count);
    int at = slot_ * Shape::kSlots + places.before;
    const int unused = slot_ * Shape::kSlots + Shape::kUnused + lane_;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const bool reaches = values.item[i] >= own_bound;
      shared_.survivor(reaches ? at : unused) = Cell::of(values.item[i], Shape::expert_of(lane_, i));
      at += reaches;
    }
    gpu_.sync_warp();
    return {places.all, false, is_right(places.all, bound)};
  }

  // Values are not NaN. The sign of a difference tells which are below: of 0 and -0 neither is.
  TY_DEVICE Kept keep_by_mask(const Router<Logit>& router, const Logit* row, const Values& values,
                              float bound, bool takes_part) {
    const float own_bound = bound == 0 ? -0.0f : bound;
    uint32_t below = 0;
#pragma unroll
    for (int i = kItems - 1; i >= 0; --i) {
      below = below << 1 | std::bit_cast<uint32_t>(values.item[i] - own_bound) >> 31;
    }
    constexpr uint32_t kAll = static_cast<uint32_t>((uint64_t{1} << kItems) - 1);
    uint32_t survives = takes_part ? ~below & kAll : 0;
    const Places places = places_of(gpu_.popcount(survives));
    Kept kept{places.all, false, is_right(places.all, bound)};
    if (gpu_.any(!kept.is_right)) {
      kept.is_void = is_void(values);
      if (gpu_.any(!kept.is_right && !kept.is_void))
        return keep_again(router, row, values, bound, takes_part);
      if (kept.is_void) kept.count = 0;
    }
    if (!kept.is_void) list(survives, slot_ * Shape::kMaxSurvivors + places.before);
    gpu_.sync_warp();
    return kept;
  }

  TY_DEVICE void list(uint32_t survives, int at) {
    int32_t first = 0;
    if constexpr (Shape::kGrouped) {
      survives = Shape::in_order_of_ids(lane_, survives);
      first = lane_ * kItems;
    }
    for (; survives != 0; survives &= survives - 1) {
      const int item = gpu_.lowest(survives);
      shared_.expert(at++) =
          static_cast<uint16_t>(Shape::kGrouped ? first + item : Shape::expert_of(lane_, item));
    }
  }

  TY_DEVICE void put_above(const RowLoader<Shape>& loader, uint32_t above, int at) {
    for (; above != 0; above &= above - 1) {
      const int32_t expert = Shape::expert_of(lane_, gpu_.lowest(above));
      key(at++) = Keys::of(loader.safe_value_of(gpu_, expert), expert);
    }
  }

  // From rank `first` on, by their ids: lane after lane where there are groups, else chunk after chunk.
  TY_DEVICE void rank_equals(uint32_t equal, float bound, int first) {
    constexpr int kRun =
        Shape::kGrouped ? kItems : Shape::kChunk;  // items of a lane that follow on each other
    if (Shape::kGrouped) equal = Shape::in_order_of_ids(lane_, equal);
#pragma unroll 1
    for (int item = 0; item < kItems && gpu_.any(first < top_k_); item += kRun) {
      auto run = static_cast<uint32_t>(equal >> item & ((uint64_t{1} << kRun) - 1));
      const Places places = places_of(gpu_.popcount(run));
      const int32_t expert = Shape::kGrouped ? lane_ * kItems : Shape::expert_of(lane_, item);
      for (int rank = first + places.before; run != 0 && rank < top_k_; run &= run - 1) {
        shared_.ranked(slot_ * Shape::kMaxK + rank++) = Keys::of(bound, expert + gpu_.lowest(run));
      }
      first += places.all;
    }
  }

  Thread& gpu_;
  Shared& shared_;
  const int slot_, top_k_, lane_;
};

}  // namespace tokenyard::gate
