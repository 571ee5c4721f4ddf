// From a row of logits, held by a few lanes, to its chosen experts and their weights. Kernels put it to use.
//
//   logits ─▶ selection values, in registers ─▶ groups: those that are not kept take no part
//   a bound that K experts reach ─▶ the survivors that do, few, in shared memory ─▶ a lane makes a key of
//   each, all different, and counts those above it: its rank ─▶ the lane that holds a chosen one weighs it
//
// What values there are changes nothing but the number of survivors. Where they are too many, or NaN leaves
// too few, they are chosen once more by a bound that no K parts of lanes have anything above, and of the
// values equal to it only the first K: these always fit.
#pragma once

#include <cstdint>

#include "gate/chosen.hpp"
#include "gate/order.hpp"
#include "gate/quick_score.hpp"
#include "gate/router.hpp"
#include "gate/row_bound.hpp"
#include "gate/row_groups.hpp"
#include "gate/row_mask.hpp"
#include "gate/row_ranks.hpp"
#include "gate/row_shape.hpp"
#include "gate/row_survivors.hpp"
#include "gate/row_total.hpp"
#include "gate/row_values.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Of one token. `thread` is the thread's number in its block, of which the first kTokens * kLanes have a row.
// Every lane of the warp goes the whole way.
template <class Thread, class Shape, int kTokens>
class LanesRow {
 public:
  using Logit = typename Shape::Logit;
  using Shared = RowShared<Thread, Shape, kTokens>;

  TY_DEVICE LanesRow(Thread& gpu, const Router<Logit>& router, const WeightRule& rule, Shared& shared,
                     const Logit* row, int thread)
      : gpu_(gpu),
        router_(router),
        rule_(router.rule(rule, Shape::kWeighting)),
        shared_(shared),
        row_(gpu.at_hand(row)),
        slot_(static_cast<int>(static_cast<unsigned>(thread) / kLanes)),
        lane_(static_cast<int>(static_cast<unsigned>(thread) % kLanes)),
        survivors_(gpu, shared, slot_, router.top_k, lane_) {}

  TY_DEVICE Chosen choose() {
    const RowLoader<Shape> loader(router_, row_, gpu_.lane() % kLanes);  // which is there before lane_
    if constexpr (Shape::kWide) survivors_.clear();
    if (kByCount && lane_ < kMaxK) shared_.by_rank(slot_ * kMaxK + lane_) = 0;
    Values values = loader.load(gpu_);
    gpu_.sync_warp();
    if (rule_.needs_row_total()) {  // softmax: values are the logits
      highest_ = lanes_highest<kLanes>(gpu_, highest_of<Shape::kItems>(values.item));
      total_ = row_total<Shape>(gpu_, values.item, highest_);
    }
    if constexpr (Shape::kMasked) mask_groups<Shape>(gpu_, router_, lane_, values.item);
    const Bound bound = bound_of(values);
    const Kept kept = survivors_.keep(router_, row_, values, bound.value, bound.takes_part);
    if constexpr (Shape::kWide) {
      return weigh(rank_wide(loader, kept, values, bound));
    } else {
      return weigh(rank_narrow(loader, kept, bound.value));
    }
  }

  // The sum of values that lanes hold by rank, neighbours first.
  TY_DEVICE float sum_by_rank(int32_t rank, float value) {
    if constexpr (kByCount) {
      if (rank < router_.top_k) shared_.by_rank(slot_ * kMaxK + rank) = value;
      gpu_.sync_warp();
      if (router_.top_k <= 8) [[likely]]
        return sum_of_eight(gpu_, shared_, slot_, 0);
      return sum_of_all(gpu_, shared_, slot_);
    } else {
      return sum_of_ranks<kLanes>(gpu_, rank < router_.top_k ? value : 0);
    }
  }

 private:
  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kMaxK = Shape::kMaxK;
  static constexpr bool kBiased = Shape::kBiased;
  static constexpr bool kByCount = Shape::kByCount;
  using Keys = typename Shape::Keys;
  using Key = typename Keys::Type;
  using Values = RowValues<Shape>;
  using Survivors = RowSurvivors<Thread, Shape, Shared>;
  using Kept = typename Survivors::Kept;
  using Survivor = typename Survivors::Survivor;

  struct Bound {
    float value;
    bool takes_part;  // the lane's experts do
  };

  // A survivor of a lane. What its weight is made of does not wait for its rank, where it need not.
  struct Ranked {
    int32_t rank;
    int32_t expert;
    float logit;
    float numerator;
  };

  // What K experts reach; -inf if that is not easily told. Leaves no value NaN.
  TY_DEVICE Bound bound_of(Values& values) {
    constexpr int kItems = Shape::kItems;
    if constexpr (Shape::kGrouped) {
      constexpr int kHalves = kLanes == 8 ? 2 : 1;  // of the lane
      TwoBest two[2];
      const auto find_two = [&] {
#pragma unroll
        for (int i = 0; i < kHalves; ++i) two[i] = two_best<kItems / kHalves>(values.item + i * kItems / 2);
        return port::max_or_nan(two[0].best, two[kHalves - 1].best);
      };
      const float highest = find_two();
      if (highest != highest) [[unlikely]] {
        values = RowLoader<Shape>::without_nan(router_, row_, lane_, values);
        find_two();
      }
      GroupOfLane group;
      float lowest;
      if constexpr (Shape::kWide) {
        const TwoBest best = two_best_of_lanes<Shape>(gpu_, lanes_of_group<Shape>(router_), two[0]);
        group = choose_group<Shape>(gpu_, router_, best.best, best.second);
        // Two of each kept group are as good as the lowest second best.
        lowest = lanes_min<kLanes>(gpu_, group.is_kept ? best.second : kInfinity);
      } else {
        if constexpr (kLanes == 16) two[1] = {gpu_.shfl_xor(two[0].best, 1), gpu_.shfl_xor(two[0].second, 1)};
        const FourBest four = both(two[0], two[1]);
        group = choose_group<Shape>(gpu_, router_, four.best[0], four.best[1]);
        lowest = survivors_.bound_of_groups(group, four, router_.kept_groups);
      }
      return {2 * router_.kept_groups < router_.top_k ? -kInfinity : lowest, group.is_kept};
    } else {
      float best[Shape::kParts];
      const auto find_best = [&] {
#pragma unroll
        for (int part = 0; part < Shape::kParts; ++part) {
          best[part] = highest_or_nan<Shape::kPart>(values.item + part * Shape::kPart);
        }
        return highest_or_nan<Shape::kParts>(best);
      };
      const float highest = find_best();
      if (highest != highest) [[unlikely]] {
        values = RowLoader<Shape>::without_nan(router_, row_, lane_, values);
        find_best();
      }
      if constexpr (Shape::kWide) {
        return {survivors_.sure_bound(best), true};
      } else {
        return {quick_bound<Shape>(gpu_, best, router_.top_k), true};
      }
    }
  }

  // Each lane has one survivor at most, and keeps it.
  TY_DEVICE Ranked rank_wide(const RowLoader<Shape>& loader, Kept kept, const Values& values, Bound bound) {
    if (!kept.are_ranked) [[likely]] {
      const Survivor own = survivors_.survivor(loader, lane_, kept.count, bound.value);
      survivors_.show(own.key);
      Ranked mine = ranked_short(kMaxK, own.key, bound.value);
      int above = survivors_.template count_above<2 * Shape::kStep>(0, own.key);
#pragma unroll 1
      for (int i = 2 * Shape::kStep; i < port::min_of(kept.count, kLanes); i += Shape::kStep) {
        above += survivors_.template count_above<Shape::kStep>(i, own.key);
      }
      if (own.key != 0) mine.rank = above;
      if (!gpu_.any(own.is_far || !kept.is_right)) return mine;
      if (gpu_.any(!kept.is_right)) {
        const bool is_void = survivors_.is_void(values);
        if (!gpu_.any(!is_void && (own.is_far || !kept.is_right))) return is_void ? ranked_void() : mine;
        gpu_.sync_warp();  // others may still read the keys
        kept = survivors_.keep_again(router_, row_, values, bound.value, bound.takes_part);
      }
    }
    return rank_far(kept);
  }

  // Each lane makes keys of two survivors and more, where there are as many. Of sixteen lanes mostly each has
  // one at most, and keeps it.
  TY_DEVICE Ranked rank_narrow(const RowLoader<Shape>& loader, Kept kept, float bound) {
    if (!kept.are_ranked) [[likely]] {
      const Survivor first = survivors_.survivor(loader, lane_, kept.count, bound);
      if constexpr (kByCount) {
        if (!gpu_.any(first.is_far || kept.is_void || kept.count > kLanes)) [[likely]] {
          const int above = survivors_.rank_of(first.key);
          return ranked(first.key != 0 ? above : kMaxK, first.expert, first.logit);
        }
      }
      Survivor next = survivors_.survivor(loader, lane_ + kLanes, kept.count, bound);
      bool is_far = first.is_far || next.is_far || kept.is_void;
      uint32_t best = survivors_.best_of_two(first.key, next.key);
#pragma unroll 1
      for (int i = 2 * kLanes; gpu_.any(i < kept.count); i += kLanes) {
        next = survivors_.survivor(loader, lane_ + i, kept.count, bound);
        is_far = is_far || next.is_far;
        best = survivors_.best_of_two(best, next.key);
      }
      if (!gpu_.any(is_far)) return ranked_short(rank_of_lane<kLanes>(lane_), best, bound);
      if (!gpu_.any(is_far && !kept.is_void)) {
        return kept.is_void ? ranked_void() : ranked_short(rank_of_lane<kLanes>(lane_), best, bound);
      }
    }
    return rank_far(kept);
  }

  TY_DEVICE Ranked rank_far(Kept kept) {
    if (!kept.are_ranked) Survivors::rank_far(gpu_, router_, row_, shared_, slot_, kept.count);
    if (kept.is_void) return ranked_void();  // beside a token that is not
    const int32_t rank = rank_held();
    const Key key =
        rank < router_.top_k ? static_cast<Key>(shared_.ranked(slot_ * kMaxK + rank)) : Keys::kNobody;
    const int32_t expert = key != Keys::kNobody ? Keys::expert(key) : 0;
    // With groups an expert may be of one that is not kept: its logit is not what it was selected by.
    constexpr bool kByLogit = !kBiased && Shape::kGrouping == Grouping::kNone;
    return ranked(rank, expert, kByLogit ? Keys::value(key) : port::to_float(row_[expert]));
  }

  // Of a row without a value above -inf.
  TY_DEVICE Ranked ranked_void() {
    const int32_t rank = rank_held();
    const int32_t expert = rank < router_.top_k ? rank : 0;
    return ranked(rank, expert, port::to_float(row_[expert]));
  }
  // The rank that a lane has where each has one.
  TY_DEVICE int32_t rank_held() const { return Shape::kWide ? lane_ : rank_of_lane<kLanes>(lane_); }

  TY_DEVICE Ranked ranked(int32_t rank, int32_t expert, float logit) {
    return {rank, expert, logit, rule_.softmax_of_chosen() ? 0 : rule_.numerator(scores(), logit, highest_)};
  }

  TY_DEVICE Ranked ranked_short(int32_t rank, uint32_t key, float bound) {
    if constexpr (Keys::kShort) {
      const auto own = static_cast<Key>(key);
      return ranked(rank, key == 0 ? 0 : Keys::expert(own), Keys::value(own));
    } else {
      int32_t expert = key == 0 ? 0 : Shape::Short::expert(key);
      // Survivors that turn out not to be right can be of the room for more experts.
      if constexpr (kBiased && Shape::kWide) expert = port::min_of(expert, router_.num_experts - 1);
      return ranked(rank, expert,
                    kBiased ? port::to_float(row_[expert]) : Shape::Short::value(key, bound + 0.0f));
    }
  }

  TY_DEVICE Chosen weigh(Ranked mine) {
    const bool is_chosen = mine.rank < router_.top_k;
    if (rule_.softmax_of_chosen()) {
      const bool counts = is_chosen && mine.logit == mine.logit;
      highest_ = lanes_highest<kLanes>(gpu_, counts ? mine.logit : -kInfinity);
      mine.numerator = is_chosen ? rule_.numerator(scores(), mine.logit, highest_) : 0;
    }
    const float divisor = rule_.divisor(sum_by_rank(mine.rank, mine.numerator), total_);
    return {mine.rank, mine.expert, rule_.weight(scores(), is_chosen ? mine.numerator : 0, divisor)};
  }

  TY_DEVICE QuickScores<Logit, Thread> scores() { return QuickScores<Logit, Thread>(gpu_); }

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
  const Logit* row_;
  const int slot_, lane_;
  Survivors survivors_;
  float highest_ = 0, total_ = 0;
};

}  // namespace tokenyard::gate
