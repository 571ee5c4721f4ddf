// From a row of 16-bit logits, without a bias or groups, to its chosen experts and their weights. Value and
// expert fit into one word, and words are sorted, whatever they are: no row takes longer than another.
//
//   logits ─▶ keys, all different ─▶ each lane sorts its own ─▶ wide: K times the highest of all lanes
//                                                              narrow: the lanes' eight best are merged
#pragma once

#include <cstdint>

#include "gate/chosen.hpp"
#include "gate/lists_merge.hpp"
#include "gate/packed_key.hpp"
#include "gate/quick_score.hpp"
#include "gate/router.hpp"
#include "gate/row_chunk.hpp"
#include "gate/row_shape.hpp"
#include "gate/row_total.hpp"
#include "gate/row_values.hpp"
#include "gate/sort.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// As LanesRow, with nothing in shared memory. Narrow: for K up to 8.
template <class Thread, class Shape, int kTokens>
class PackedRow {
 public:
  using Logit = typename Shape::Logit;
  struct Shared {};

  TY_DEVICE PackedRow(Thread& gpu, const Router<Logit>& router, const WeightRule& rule, Shared& /*unused*/,
                      const Logit* row, int /*thread*/)
      : gpu_(gpu),
        router_(router),
        rule_(router.rule(rule, Shape::kWeighting)),
        row_(row),
        lane_(gpu.lane() % kLanes) {}

  TY_DEVICE Chosen choose() {
    const Numbers numbers = load();
    int32_t key[kItems];
    make_keys(numbers, key);
    const Ranked mine = Shape::kWide ? rank_wide(key) : rank_narrow(key);
    const float total = rule_.needs_row_total() ? total_of(numbers, mine.highest) : 0;
    const bool is_chosen = mine.rank < router_.top_k;
    const QuickScores<Logit, Thread> scores(gpu_);
    const float of_rank = rule_.numerator(scores, Key::value(mine.key), mine.highest);
    const float numerator = is_chosen ? of_rank : 0;
    const float divisor = rule_.divisor(sum_of_chosen(numerator), total);
    return {mine.rank, Key::expert(mine.key), rule_.weight(scores, numerator, divisor)};
  }

  // The sum of values that lanes hold by rank, neighbours first.
  TY_DEVICE float sum_by_rank(int32_t rank, float value) {
    const float sum = sum_of_chosen(rank < router_.top_k ? value : 0);
    return gpu_.shfl(sum, gpu_.lane() - lane_);  // which holds rank 0
  }

 private:
  static constexpr int kLanes = Shape::kLanes;
  static constexpr int kItems = Shape::kItems;
  using Key = PackedKey<Logit>;
  static_assert(kItems >= 2 && !Shape::kBiased && Shape::kGrouping == Grouping::kNone);
  static_assert(kLanes == Thread::warp_size || kLanes == 8);

  // Two in a word, -0 as 0 and NaN as -inf: it has the same weight.
  struct Numbers {
    uint32_t pair[kItems / 2];
  };

  // What a lane has of its token's result.
  struct Ranked {
    int32_t rank;
    int32_t key;    // of that rank, if it is below K
    float highest;  // of the row
  };

  TY_DEVICE Numbers load() const {
    const RowLoader<Shape> loader(router_, row_, lane_);
    typename RowLoader<Shape>::Logits logits[Shape::kChunks];
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) logits[c] = loader.load_logits(c);
    constexpr int kPairs = Shape::kChunk / 2;
    Numbers numbers;
#pragma unroll
    for (int i = 0; i < kItems / 2; ++i) {
      numbers.pair[i] = port::numbers_of_pair<Logit>(logits[i / kPairs].pair(i % kPairs));
    }
    return numbers;
  }

  // Of the lane's experts, the highest first.
  TY_DEVICE void make_keys(const Numbers& numbers, int32_t (&key)[kItems]) const {
#pragma unroll
    for (int i = 0; i < kItems; i += 2) Key::of_pair(numbers.pair[i / 2], Shape::expert_of(0, i), key + i);
    constexpr int kRun = Shape::kWide ? kItems : port::min_of(kItems, 8);
    sort<kRun>(key);
#pragma unroll
    for (int run = kRun; run < kItems; run += kRun) {
      sort<kRun>(key + run);
#pragma unroll
      for (int i = 0; i < kRun; ++i) key[i] = port::max_of(key[i], key[run + kRun - 1 - i]);
      sort_bitonic<kRun>(key);
    }
#pragma unroll
    for (int i = 0; i < kRun; ++i) key[i] -= Shape::expert_of(lane_, 0);
  }

  // The lane of a rank keeps the highest that is left; the lane that had it goes on to its next.
  TY_DEVICE Ranked rank_wide(int32_t (&key)[kItems]) {
    int32_t own = 0;
    const auto take = [&](int rank) {
      const int32_t best = gpu_.reduce_max(key[0]);
      if (lane_ == rank) own = best;
      const bool is_own = key[0] == best;
#pragma unroll
      for (int i = 0; i + 1 < kItems; ++i) key[i] = is_own ? key[i + 1] : key[i];
      key[kItems - 1] = is_own ? INT32_MIN : key[kItems - 1];
      return best;
    };
    const float highest = Key::value(take(0));
    take(1);
    if (router_.top_k > 2) {
#pragma unroll
      for (int rank = 2; rank < 8; ++rank) take(rank);
#pragma unroll 1
      for (int rank = 8; rank < router_.top_k; ++rank) take(rank);
    }
    return {lane_, own, highest};
  }

  TY_DEVICE Ranked rank_narrow(const int32_t (&key)[kItems]) {
    int32_t best[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) best[i] = key[i];
    const int32_t own = merge_eight_lists(gpu_, best);
    return {rank_of_merged(lane_), own, Key::value(gpu_.shfl(own, gpu_.lane() - lane_))};
  }

  TY_DEVICE float total_of(const Numbers& numbers, float highest) {
    float value[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      value[i] = port::to_float(static_cast<Logit>(numbers.pair[i / 2] >> 16 * (i % 2) & 0xffffu));
    }
    return row_total<Shape>(gpu_, value, highest);
  }

  // To the lanes of the first K ranks.
  TY_DEVICE float sum_of_chosen(float value) {
    if constexpr (Shape::kWide) {
      float sum = port::lanes_tree_sum<8>(gpu_, value);
#pragma unroll 1
      for (int mask = 8; mask < router_.top_k; mask *= 2) sum += gpu_.shfl_xor(sum, mask);
      return sum;
    } else {
      return sum_of_merged(gpu_, value);
    }
  }

  Thread& gpu_;
  const Router<Logit>& router_;
  WeightRule rule_;
  const Logit* row_;
  const int lane_;
};

}  // namespace tokenyard::gate
