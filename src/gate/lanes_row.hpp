// From a row of logits, held by a few lanes, to its chosen experts and their weights. Kernels put it to use.
//
//   logits ─▶ selection values, in registers ─▶ groups: those that are not kept take no part
//   a bound that K experts reach ─▶ the survivors that do, few, in shared memory, as keys that are all
//   different ─▶ each counts those above it: its rank ─▶ the lane that holds a chosen one weighs it
//
// What values there are changes nothing but the number of survivors. Where they are too many, or NaN leaves
// too few, they are chosen once more by a bound that no K parts of lanes have anything above, and of the
// values equal to it only the first K: these always fit.
#pragma once

#include <cstdint>

#include "gate/order.hpp"
#include "gate/router.hpp"
#include "gate/row_bound.hpp"
#include "gate/row_groups.hpp"
#include "gate/row_ranks.hpp"
#include "gate/row_shape.hpp"
#include "gate/row_survivors.hpp"
#include "gate/row_values.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// What a lane has of its token's result: nothing where the rank is K or beyond.
struct Chosen {
  int32_t rank;
  int32_t expert;
  float weight;
};

// Of one token, the `slot`-th in shared memory. Every lane of the warp goes the whole way.
template <class Thread, class Shape, int kTokens>
class LanesRow {
 public:
  using Logit = typename Shape::Logit;
  using Shared = RowShared<Thread, Shape, kTokens>;

  TY_DEVICE LanesRow(Thread& gpu, const Router<Logit>& router, const WeightRule& rule, Shared& shared,
                     const Logit* row, int slot)
      : gpu_(gpu),
        router_(router),
        rule_(rule),
        shared_(shared),
        row_(row),
        slot_(slot),
        lane_(gpu.lane() % kLanes),
        survivors_(gpu, shared, slot, router.top_k) {
    rule_.weighting = Shape::kWeighting;  // known to the compiler
  }

  TY_DEVICE Chosen choose() {
    const RowLoader<Shape> loader(router_, row_, lane_);
    if (lane_ < kMaxK) shared_.by_rank(slot_ * kMaxK + lane_) = 0;
    if constexpr (Shape::kWide) survivors_.key(lane_) = Keys::kNobody;
    Values values = loader.load(gpu_);
    gpu_.sync_warp();
    if (rule_.needs_row_total()) add_up_row(values);
    const Bound bound = bound_of(values);
    const Kept kept = survivors_.keep(router_, row_, values, bound.value, bound.takes_part);
    if constexpr (Shape::kWide) {
      return weigh(rank_wide(loader, kept));
    } else {
      return weigh(rank_narrow(loader, kept, bound.value));
    }
  }

  // The sum of values that lanes hold by rank, zeros for the rest, neighbours first.
  TY_DEVICE float sum_by_rank(int32_t rank, float value) {
    if (rank < router_.top_k) shared_.by_rank(slot_ * kMaxK + rank) = value;
    gpu_.sync_warp();
    if (kMaxK == 8 || router_.top_k <= 8) return sum_of_eight(gpu_, shared_, slot_, 0);
    return sum_of_all(gpu_, shared_, slot_);
  }

 private:
  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kMaxK = Shape::kMaxK;
  static constexpr bool kBiased = Shape::kBiased;
  using Keys = typename Shape::Keys;
  using Key = typename Keys::Type;
  using Values = RowValues<Shape>;
  using Survivors = RowSurvivors<Thread, Shape, Shared>;
  using Kept = typename Survivors::Kept;

  struct Bound {
    float value;
    bool takes_part;  // the lane's experts do
  };

  // A survivor of a lane.
  struct Ranked {
    int32_t rank;
    int32_t expert;
    float logit;
  };

  // Softmax over all: values are the logits.
  TY_DEVICE void add_up_row(const Values& values) {
    highest_ = lanes_highest<kLanes>(gpu_, highest_of<Shape::kItems>(values.item));
    float of_chunk[Shape::kChunks];
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      float term[Shape::kChunk];
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) {
        const float x = values.item[c * Shape::kChunk + i];
        term[i] = x == x ? exp_of_distance(x, highest_) : 0;
      }
      of_chunk[c] = port::tree_sum<Shape::kChunk>(term);
    }
    if constexpr (Shape::kGrouped) {
      total_ = port::lanes_tree_sum<kLanes>(gpu_, port::tree_sum<Shape::kChunks>(of_chunk));
    } else {
      total_ = port::lanes_tree_sum<kLanes>(gpu_, of_chunk);
    }
  }

  // What K experts reach; -inf if that is not easily told. Leaves no value NaN that lanes keep by mask.
  TY_DEVICE Bound bound_of(Values& values) {
    constexpr int kItems = Shape::kItems;
    if constexpr (Shape::kByMask && !Shape::kGrouped && !(Shape::kWide && kBiased)) {
      const float highest = highest_or_nan<kItems>(values.item);
      if (highest != highest) values = RowLoader<Shape>::without_nan(router_, row_, lane_, values);
    }
    if constexpr (Shape::kGrouped) {
      TwoBest two = two_best<kItems>(values.item);
      if (!Shape::kWide && two.best != two.best) {
        values = RowLoader<Shape>::without_nan(router_, row_, lane_, values);
        two = two_best<kItems>(values.item);
      }
      const GroupOfLane group = choose_group<Shape>(gpu_, router_, two);
      // Two of each kept group are as good as the lowest second best.
      if (2 * router_.kept_groups < router_.top_k) return {-kInfinity, group.is_kept};
      return {lanes_min<kLanes>(gpu_, group.is_kept ? group.second : kInfinity), group.is_kept};
    } else if constexpr (Shape::kWide) {
      return {survivors_.sure_bound(values), true};
    } else {
      float best[Shape::kParts];
#pragma unroll
      for (int part = 0; part < Shape::kParts; ++part) {
        best[part] = highest_or_nan<Shape::kPart>(values.item + part * Shape::kPart);
      }
      return {quick_bound<Shape>(gpu_, best, router_.top_k), true};
    }
  }

  // Each lane has one survivor at most, and keeps it.
  TY_DEVICE Ranked rank_wide(const RowLoader<Shape>& loader, Kept kept) {
    if (!kept.have_keys) survivors_.make_keys(loader, kept.count);
    int count = kept.count;
    if (gpu_.any(count > kLanes)) {
      count = keep_chosen<Shape>(gpu_, shared_, slot_, count, router_.top_k);
    }
    const Key key = lane_ < count ? static_cast<Key>(survivors_.key(lane_)) : Keys::kNobody;
    Ranked mine = ranked(kMaxK, key);
    int above = count_above<Shape>(gpu_, shared_, slot_, 0, key) +
                count_above<Shape>(gpu_, shared_, slot_, Shape::kStep, key);
#pragma unroll 1
    for (int i = 2 * Shape::kStep; i < count; i += Shape::kStep) {
      above += count_above<Shape>(gpu_, shared_, slot_, i, key);
    }
    if (lane_ < count) mine.rank = above;
    return mine;
  }

  // Each lane makes keys of two survivors and more, in one word if they are not far above the bound.
  TY_DEVICE Ranked rank_narrow(const RowLoader<Shape>& loader, Kept kept, float bound) {
    if (!kept.have_keys) {
      const ShortKey first = short_key(loader, lane_, kept.count, bound);
      ShortKey next = short_key(loader, lane_ + kLanes, kept.count, bound);
      bool is_far = first.is_far || next.is_far;
      SortedLane best = best_eight(gpu_, first.key, next.key);
#pragma unroll 1
      for (int i = 2 * kLanes; gpu_.any(i < kept.count); i += kLanes) {
        next = short_key(loader, lane_ + i, kept.count, bound);
        is_far = is_far || next.is_far;
        best = best_eight(gpu_, best.key, next.key);
      }
      if (!gpu_.any(is_far)) return ranked_short(best);
    }
    rank_far(gpu_, router_, row_, shared_, slot_, kept);
    return ranked(lane_, lane_ < router_.top_k ? static_cast<Key>(shared_.ranked(slot_ * kMaxK + lane_))
                                               : Keys::kNobody);
  }

  static TY_DEVICE_SELDOM void rank_far(Thread gpu, const Router<Logit>& router, const Logit* row,
                                        Shared& shared, int slot, Kept kept) {
    const RowLoader<Shape> loader(router, row, gpu.lane() % kLanes);
    if (!kept.have_keys) Survivors(gpu, shared, slot, router.top_k).make_keys(loader, kept.count);
    rank_many<Shape>(gpu, shared, slot, kept.count, router.top_k);
  }

  TY_DEVICE Ranked ranked(int32_t rank, Key key) {
    const int32_t expert = key != Keys::kNobody ? Keys::expert(key) : 0;
    return {rank, expert, kBiased ? port::to_float(row_[expert]) : Keys::value(key)};
  }

  struct ShortKey {
    uint32_t key;  // 0: nobody
    bool is_far;   // and has no key
  };

  // Of a narrow shape's survivor: how far it is above the bound, and its expert.
  TY_DEVICE ShortKey short_key(const RowLoader<Shape>& loader, int i, int kept, float bound) {
    const bool is_there = i < kept;
    const int32_t expert = is_there ? static_cast<int32_t>(survivors_.key(i)) : 0;
    const float value = loader.value_of(gpu_, expert);
    if constexpr (Keys::kShort) {
      return {is_there ? static_cast<uint32_t>(Keys::of(value, expert)) : 0, false};
    } else {
      static_assert(kLanes * Shape::kItems <= 256);
      const uint32_t distance =
          static_cast<uint32_t>(order_of(value + 0.0f)) - static_cast<uint32_t>(order_of(bound + 0.0f));
      return {is_there ? (distance << 8 | static_cast<uint32_t>(255 - expert)) + 1 : 0,
              is_there && distance >= 0xffffffu};
    }
  }

  TY_DEVICE Ranked ranked_short(SortedLane lane) {
    const int32_t expert = lane.key == 0  ? 0
                           : Keys::kShort ? Keys::expert(static_cast<Key>(lane.key))
                                          : 255 - static_cast<int32_t>((lane.key - 1) & 255);
    return {lane.rank, expert, port::to_float(row_[expert])};
  }

  TY_DEVICE Chosen weigh(Ranked mine) {
    const bool is_chosen = mine.rank < router_.top_k;
    if (rule_.softmax_of_chosen()) {
      const bool counts = is_chosen && mine.logit == mine.logit;
      highest_ = lanes_highest<kLanes>(gpu_, counts ? mine.logit : -kInfinity);
    }
    const float numerator = is_chosen ? rule_.numerator(mine.logit, highest_) : 0;
    const float divisor = rule_.divisor(sum_by_rank(mine.rank, numerator), total_);
    // 0 has a division of its own, which lanes without an expert should not bring upon the others.
    return {mine.rank, mine.expert, rule_.weight(is_chosen ? numerator : 1.0f, divisor)};
  }

  static TY_DEVICE float sum_of_eight(Thread& gpu, Shared& shared, int slot, int first) {
    const port::Pack<float> a = gpu.load_pack(shared.by_rank, slot * kMaxK + first);
    const port::Pack<float> b = gpu.load_pack(shared.by_rank, slot * kMaxK + first + 4);
    return port::tree_sum<4>(a.item) + port::tree_sum<4>(b.item);
  }

  static TY_DEVICE_SELDOM float sum_of_all(Thread gpu, Shared& shared, int slot) {
    float of_eight[kMaxK / 8];
#pragma unroll
    for (int i = 0; i < kMaxK / 8; ++i) of_eight[i] = sum_of_eight(gpu, shared, slot, 8 * i);
    return port::tree_sum<kMaxK / 8>(of_eight);
  }

  Thread& gpu_;
  const Router<Logit>& router_;
  WeightRule rule_;
  Shared& shared_;
  const Logit* const row_;
  const int slot_, lane_;
  Survivors survivors_;
  float highest_ = 0, total_ = 0;
};

}  // namespace tokenyard::gate
