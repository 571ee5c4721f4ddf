// gate for few experts without a bias: a thread a token, all in registers, no thread needs another.
//
//   logits ─▶ keys, all different ─▶ sorted by a network, or the two best ─▶ the first K ─▶ weights
#pragma once

#include <cstdint>
#include <type_traits>

#include "gate/outputs.hpp"
#include "gate/packed_key.hpp"
#include "gate/quick_score.hpp"
#include "gate/router.hpp"
#include "gate/row_chunk.hpp"
#include "gate/row_key.hpp"
#include "gate/selection.hpp"
#include "gate/sort.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Up to eight experts, and K up to kMaxK: 2 or 8. kOfChosen: whether weights are the softmax of the chosen.
template <class Logit, int kThreads, int kMaxK, bool kOfChosen>
struct ThreadGate {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kItems = 8;

  template <class Thread>
  struct Shared {};

  bool loads_row;     // at once
  bool stores_pairs;  // of a plain call with K = 2
  Router<Logit> router;
  WeightRule rule;
  Outputs out;

  explicit ThreadGate(const Problem& problem)
      : loads_row(problem.num_experts == kItems && loads_whole_chunks(problem, kItems)),
        stores_pairs(Outputs(problem).stores_plain_pairs()),
        router(problem),
        rule(problem),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.let_next_begin();
    const unsigned token =
        static_cast<unsigned>(gpu.block()) * kThreads + static_cast<unsigned>(gpu.thread());
    if (token >= static_cast<unsigned>(router.num_tokens)) return;
    const Result result = choose(gpu, router.row(token));
    if (kMaxK == 2 && stores_pairs) [[likely]] {
      router.put_plain_pair(token, {Keys::expert(result.key[0]), Keys::expert(result.key[1])},
                            {result.weight[0], result.weight[1]});
    } else {
      write(gpu, token, result);
    }
  }

 private:
  static constexpr bool kPacks = sizeof(Logit) == 2;
  using Keys = std::conditional_t<kPacks, PackedKey<Logit>, RowKey<Logit, false>>;

  using Logits = Chunk<Logit, kItems>;

  // By rank.
  struct Result {
    typename Keys::Type key[kItems];
    float weight[kMaxK];
  };

  static TY_DEVICE_SELDOM Logits load_each(const Logit* row, int32_t num_experts) {
    Logits logits;
#pragma unroll
    for (int i = 0; i < kItems; ++i) logits.put(i, i < num_experts ? row[i] : kMinusInfinity<Logit>);
    return logits;
  }

  template <class Thread>
  TY_DEVICE Result choose(Thread& gpu, const Logit* row) const {
    Logits logits;
    if (loads_row) [[likely]] {
      logits.load(row);
    } else {
      logits = load_each(row, router.num_experts);
    }
    Result result;
    make_keys(logits, result.key);
    if constexpr (kMaxK == 2) {
      put_two_highest_first<kItems>(result.key);
    } else {
      sort<kItems>(result.key);
    }
    if constexpr (kMaxK == 2 && kOfChosen) {
      weigh_two(gpu, result);
    } else {
      weigh(gpu, logits, result);
    }
    return result;
  }

  static TY_DEVICE void make_keys(const Logits& logits, typename Keys::Type (&key)[kItems]) {
    if constexpr (kPacks) {
#pragma unroll
      for (int i = 0; i < kItems; i += 2) {
        Keys::of_pair(port::numbers_of_pair<Logit>(logits.pair(i / 2)), i, key + i);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kItems; ++i) key[i] = Keys::of(port::max(logits[i], -kInfinity), i);
    }
  }

  // The same as weigh(), of 1 and the second's power, whose sum is 1 to 2.
  template <class Thread>
  TY_DEVICE void weigh_two(Thread& gpu, Result& result) const {
    const float highest = Keys::value(result.key[0]);
    const float power = quick_exp_of_distance(gpu, Keys::value(result.key[1]), highest);
    const float second = router.top_k > 1 ? power : 0;
    const float first = gpu.reciprocal(1.0f + second);
    result.weight[0] = highest > -kInfinity ? first * router.scale : 0;
    result.weight[1] = second * first * router.scale;
  }

  template <class Thread>
  TY_DEVICE void weigh(Thread& gpu, const Logits& logits, Result& result) const {
    const QuickScores<Logit, Thread> scores(gpu);
    const float highest = Keys::value(result.key[0]);
    float sum_of_row = 0;
    if (!kOfChosen && rule.needs_row_total()) {
      float term[kItems];
#pragma unroll
      for (int i = 0; i < kItems; ++i) term[i] = quick_term(gpu, logits[i], highest);
      sum_of_row = port::tree_sum<kItems>(term);
    }
#pragma unroll
    for (float& weight : result.weight) weight = 0;
#pragma unroll
    for (int rank = 0; rank < kMaxK; ++rank) {
      if (rank > 0 && rank >= out.top_k) break;
      const float logit = Keys::value(result.key[rank]);
      result.weight[rank] =
          kOfChosen ? scores.exp_of_distance(logit, highest) : rule.numerator(scores, logit, highest);
    }
    const float sum = port::tree_sum<kMaxK>(result.weight);
    const float divisor = kOfChosen ? sum : rule.divisor(sum, sum_of_row);
#pragma unroll
    for (int rank = 0; rank < kMaxK; ++rank) {
      if (rank > 0 && rank >= out.top_k) break;
      result.weight[rank] = rule.weight(scores, result.weight[rank], divisor);
    }
  }

  template <class Thread>
  TY_DEVICE void write(Thread& gpu, unsigned token, const Result& result) const {
    if (!out.is_real(token)) {
      for (int column = 0; column < out.columns; ++column) out.put_padding(token, column);
      return;
    }
#pragma unroll
    for (int rank = 0; rank < kMaxK; ++rank) {
      if (rank > 0 && rank >= out.top_k) break;
      out.put_expert(gpu, token, rank, Keys::expert(result.key[rank]), result.weight[rank]);
    }
    if (out.columns == out.top_k) return;
    const float shared = rule.shared_weight(port::tree_sum<kMaxK>(result.weight));
    for (int column = out.top_k; column < out.columns; ++column) {
      out.put(token, column, out.first_shared + column - out.top_k, shared);
    }
  }
};

}  // namespace tokenyard::gate
