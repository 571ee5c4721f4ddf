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

#include <bit>
#include <cstdint>
#include <limits>

#include "gate/router.hpp"
#include "gate/row_bound.hpp"
#include "gate/row_groups.hpp"
#include "gate/row_shape.hpp"
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

// In the shared memory of a block with so many tokens.
template <class Thread, class Shape, int kTokens>
struct RowShared {
  template <class T, int N>
  using array = typename Thread::template array<T, N>;
  array<typename Shape::Key, kTokens * Shape::kSlots> survivor;
  array<typename Shape::Key, kTokens * Shape::kMaxK> ranked;
  array<float, kTokens * Shape::kLanes * Shape::kParts> highest;
  array<float, kTokens * Shape::kMaxK> by_rank;
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
        lane_(gpu.lane() % kLanes),
        slot_(slot),
        loader_(router, row, lane_) {
    if constexpr (Shape::kSelection == Selection::kSigmoid) rule_.score = TY_GATE_SIGMOID;
    if constexpr (Shape::kSelection == Selection::kSqrtSoftplus) rule_.score = TY_GATE_SQRT_SOFTPLUS;
  }

  TY_DEVICE Chosen choose() {
    if (lane_ < kMaxK) shared_.by_rank(slot_ * kMaxK + lane_) = 0;
    loader_.load(gpu_, value_);
    if (!kBiased && rule_.needs_row_total()) add_up_row();
    const float bound = mask_and_bound();
    return weigh(rank(keep_survivors(bound)));
  }

  // The sum of values that lanes hold by rank, zeros for the rest.
  TY_DEVICE float sum_by_rank(int32_t rank, float value) {
    if (rank < router_.top_k) shared_.by_rank(slot_ * kMaxK + rank) = value;
    gpu_.sync_warp();
    float of_eight[kMaxK / 8];
#pragma unroll
    for (int i = 0; i < kMaxK / 8; ++i) of_eight[i] = 8 * i < router_.top_k ? sum_of_eight(8 * i) : 0;
    return port::tree_sum<kMaxK / 8>(of_eight);
  }

 private:
  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kItems = Shape::kItems;
  static constexpr int kMaxK = Shape::kMaxK;
  static constexpr bool kBiased = Shape::kBiased;
  static constexpr bool kByMask = kItems > 8;  // survivors by a mask of items
  using Key = typename Shape::Key;

  struct Places {
    int before, all;
  };

  struct Ranked {
    int32_t rank;
    int32_t expert;
    float logit;
  };

  TY_DEVICE decltype(auto) survivor(int i) { return shared_.survivor(slot_ * Shape::kSlots + i); }

  // Softmax over all: value_ holds the logits.
  TY_DEVICE void add_up_row() {
    highest_ = lanes_highest<kLanes>(gpu_, highest_of<kItems>(value_));
    float of_chunk[Shape::kChunks];
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      float term[Shape::kChunk];
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) {
        const float x = value_[c * Shape::kChunk + i];
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

  TY_DEVICE float mask_and_bound() {
    if constexpr (Shape::kGrouped) {
      TwoBest two = two_best<kItems>(value_);
      if (two.best != two.best) {
        loader_.settle(value_);
        two = two_best<kItems>(value_);
      }
      const GroupOfLane group = choose_group<Shape>(gpu_, router_, two);
      is_kept_ = group.is_kept;
      // Two of each kept group are as good as the lowest second best.
      if (2 * router_.kept_groups >= router_.top_k) {
        return lanes_min<kLanes>(gpu_, is_kept_ ? group.second : kInfinity);
      }
      drop_masked();
    } else if constexpr (kBiased) {
      const float best = two_best<kItems>(value_).best;
      if (best != best) loader_.settle(value_);
    }
    if constexpr (Shape::kWide) {
      return sure_bound();
    } else {
      return quick_bound<Shape>(gpu_, value_, router_.top_k);
    }
  }

  TY_DEVICE float sure_bound() {
    return bound_of_parts<Shape>(gpu_, value_, router_.top_k, shared_.highest,
                                 slot_ * kLanes * Shape::kParts);
  }

  TY_DEVICE void drop_masked() {
#pragma unroll
    for (int i = 0; i < kItems; ++i) value_[i] = is_kept_ ? port::max(value_[i], -kInfinity) : -kInfinity;
    is_kept_ = true;
  }

  // Puts the survivors into shared memory, in any order; returns their number.
  TY_DEVICE int keep_survivors(float bound) {
    const float bound_here = is_kept_ ? bound : std::numeric_limits<float>::quiet_NaN();
    uint32_t survives = 0;
    int count = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (kByMask) survives |= (value_[i] >= bound_here ? 1u : 0u) << i;
      if (!kByMask) count += value_[i] >= bound_here;
    }
    if (kByMask) count = gpu_.popcount(survives);
    const Places places = places_of(count);
    int kept = places.all;
    if (gpu_.any(kept < router_.top_k || kept > Shape::kMaxSurvivors || bound == -kInfinity)) {
      kept = keep_few_equals(bound);
    } else if constexpr (kByMask) {
      put_masked(survives, places.before, kept);
    } else {
      int at = places.before;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (value_[i] >= bound_here) put_survivor(at, i);
        at += value_[i] >= bound_here;
      }
    }
    // Ranks are counted in steps.
    if (lane_ < Shape::kStep) survivor(kept + lane_) = Shape::kNobody;
    gpu_.sync_warp();
    return kept;
  }

  TY_DEVICE void put_survivor(int at, int item) {
    survivor(at) = Shape::key_of(value_[item], Shape::expert_of(lane_, item));
  }

  // First the experts alone, so that then all lanes make keys of them, from memory.
  TY_DEVICE void put_masked(uint32_t survives, int at, int kept) {
    for (; survives != 0; survives &= survives - 1) {
      survivor(at++) = Shape::expert_of(lane_, gpu_.lowest(survives));
    }
    gpu_.sync_warp();
    for (int i = lane_; i < kept; i += kLanes) {
      const auto expert = static_cast<int32_t>(survivor(i));
      survivor(i) = Shape::key_of(loader_.value_of(gpu_, expert), expert);
    }
  }

  // Of the bound's equals only the first K, by a better bound where that is not few enough.
  TY_DEVICE int keep_few_equals(float bound) {
    drop_masked();
    for (bool is_sure = false;; is_sure = true) {
      int above = 0, equal = 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        above += value_[i] > bound;
        equal += value_[i] == bound;
      }
      const Places places = places_of(above);
      const int equals = places_of(equal).all;
      const int kept = places.all + port::min_of(equals, router_.top_k);
      const bool fits = places.all + equals >= router_.top_k && kept <= Shape::kMaxSurvivors;
      if (is_sure || !gpu_.any(!fits)) {
        put_few_equals(bound, places);
        return kept;
      }
      const float sure = sure_bound();
      if (!fits) bound = sure;
    }
  }

  TY_DEVICE void put_few_equals(float bound, Places above) {
    int equals[Shape::kChunks] = {};
#pragma unroll
    for (int i = 0; i < kItems; ++i) equals[i / Shape::kChunk] += value_[i] == bound;
    int in_lane = 0;  // with groups
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) in_lane += equals[c];
    const int before_lane = places_of(in_lane).before;
    int at = above.before;
    int in_chunks = 0;  // without
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      const int32_t first = Shape::first_of_chunk(lane_, c);
      int before = before_lane;
      if constexpr (Shape::kGrouped) {
#pragma unroll
        for (int other = 0; other < Shape::kChunks; ++other) {
          if (Shape::first_of_chunk(lane_, other) < first) before += equals[other];
        }
      } else {
        const Places places = places_of(equals[c]);
        before = in_chunks + places.before;
        in_chunks += places.all;
      }
#pragma unroll
      for (int i = c * Shape::kChunk; i < (c + 1) * Shape::kChunk; ++i) {
        if (value_[i] > bound) put_survivor(at++, i);
        if (value_[i] != bound) continue;
        if (before < router_.top_k) put_survivor(above.all + before, i);
        ++before;
      }
    }
  }

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

  TY_DEVICE Ranked ranked(int32_t rank, Key key, bool is_there) {
    const int32_t expert = is_there ? Shape::expert_of_key(key) : 0;
    return {rank, expert, kBiased ? port::to_float(row_[expert]) : Shape::value_of_key(key)};
  }

  TY_DEVICE Ranked rank(int kept) {
    if constexpr (Shape::kWide) {
      if (!gpu_.any(kept > kLanes)) {  // each lane has one, and keeps it
        const bool is_there = lane_ < kept;
        const Key key = is_there ? static_cast<Key>(survivor(lane_)) : Shape::kNobody;
        Ranked mine = ranked(kMaxK, key, is_there);
        int above = 0;
        for (int i = 0; i < kept; i += Shape::kStep) add_above(i, key, above);
        if (is_there) mine.rank = above;
        return mine;
      }
    }
    for (int i = lane_; i < kept; i += 2 * kLanes) {
      const bool has_two = i + kLanes < kept;
      const Key key[2] = {survivor(i), has_two ? static_cast<Key>(survivor(i + kLanes)) : Shape::kNobody};
      int above[2] = {};
      for (int j = 0; j < kept; j += Shape::kStep) {
        add_above(j, key[0], above[0]);
        add_above(j, key[1], above[1]);
      }
      if (above[0] < router_.top_k) shared_.ranked(slot_ * kMaxK + above[0]) = key[0];
      if (has_two && above[1] < router_.top_k) shared_.ranked(slot_ * kMaxK + above[1]) = key[1];
    }
    gpu_.sync_warp();
    const bool is_there = lane_ < router_.top_k;
    return ranked(lane_, is_there ? static_cast<Key>(shared_.ranked(slot_ * kMaxK + lane_)) : Shape::kNobody,
                  is_there);
  }

  // How many of the next survivors are above this one.
  TY_DEVICE void add_above(int first, Key key, int& above) {
#pragma unroll
    for (int i = 0; i < Shape::kStep; i += Shape::kPackKeys) {
      const port::Pack<Key> others = gpu_.load_pack(shared_.survivor, slot_ * Shape::kSlots + first + i);
#pragma unroll
      for (int j = 0; j < Shape::kPackKeys; ++j) above += others.item[j] > key;
    }
  }

  TY_DEVICE Chosen weigh(Ranked mine) {
    const bool is_chosen = mine.rank < router_.top_k;
    if (rule_.softmax_of_chosen()) {
      const bool counts = is_chosen && mine.logit == mine.logit;
      highest_ = lanes_highest<kLanes>(gpu_, counts ? mine.logit : -kInfinity);
    }
    const float numerator = is_chosen ? rule_.numerator(mine.logit, highest_) : 0;
    const float divisor = rule_.divisor(sum_by_rank(mine.rank, numerator), total_);
    return {mine.rank, mine.expert, rule_.weight(numerator, divisor)};
  }

  // Neighbours first.
  TY_DEVICE float sum_of_eight(int first) {
    const port::Pack<float> a = gpu_.load_pack(shared_.by_rank, slot_ * kMaxK + first);
    const port::Pack<float> b = gpu_.load_pack(shared_.by_rank, slot_ * kMaxK + first + 4);
    return port::tree_sum<4>(a.item) + port::tree_sum<4>(b.item);
  }

  Thread& gpu_;
  const Router<Logit>& router_;
  WeightRule rule_;
  Shared& shared_;
  const Logit* const row_;
  const int lane_, slot_;
  const RowLoader<Shape> loader_;
  float value_[kItems];
  bool is_kept_ = true;
  float highest_ = 0, total_ = 0;
};

}  // namespace tokenyard::gate
