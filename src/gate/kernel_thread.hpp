// gate for few experts without a bias: a thread a token, all in registers, no thread needs another.
//
//   logits ─▶ keys, all different ─▶ sorted by a network ─▶ the first K ─▶ weights
#pragma once

#include <cstdint>

#include "gate/outputs.hpp"
#include "gate/router.hpp"
#include "gate/row_chunk.hpp"
#include "gate/row_key.hpp"
#include "gate/selection.hpp"
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

  Router<Logit> router;
  bool loads_row;  // at once
  WeightRule rule;
  Outputs out;

  explicit ThreadGate(const Problem& problem)
      : router(problem),
        loads_row(problem.num_experts == kItems && loads_whole_chunks(problem, kItems)),
        rule(problem),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.let_next_begin();
    const unsigned token =
        static_cast<unsigned>(gpu.block()) * kThreads + static_cast<unsigned>(gpu.thread());
    if (token >= static_cast<unsigned>(router.num_tokens)) return;
    const Result result = choose(router.row(token));
    if (out.is_plain) {
#pragma unroll
      for (int rank = 0; rank < kMaxK; ++rank) {
        if (rank > 0 && rank >= out.top_k) break;
        out.put_plain(token, rank, Keys::expert(result.key[rank]), result.weight[rank]);
      }
    } else {
      write(gpu, token, result);
    }
  }

 private:
  using Keys = RowKey<Logit, false>;

  // By rank.
  struct Result {
    typename Keys::Type key[kItems];
    float weight[kMaxK];
  };

  TY_DEVICE Result choose(const Logit* row) const {
    Chunk<Logit, kItems> logits;
    if (loads_row) {
      logits.load(row);
    } else {
#pragma unroll
      for (int i = 0; i < kItems; ++i) logits.put(i, i < router.num_experts ? row[i] : kMinusInfinity<Logit>);
    }
    Result result;
#pragma unroll
    for (int i = 0; i < kItems; ++i) result.key[i] = Keys::of(port::max(logits[i], -kInfinity), i);
    sort(result.key);
    weigh(logits, result);
    return result;
  }

  // Batcher's odd-even merge sort, the highest first.
  static TY_DEVICE void sort(typename Keys::Type (&key)[kItems]) {
    constexpr int kPairs[][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2}, {1, 3}, {4, 6},
                                 {5, 7}, {1, 2}, {5, 6}, {0, 4}, {1, 5}, {2, 6}, {3, 7},
                                 {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};
#pragma unroll
    for (const auto& [a, b] : kPairs) {
      const auto higher = key[a] > key[b] ? key[a] : key[b];
      key[b] = key[a] > key[b] ? key[b] : key[a];
      key[a] = higher;
    }
  }

  TY_DEVICE void weigh(const Chunk<Logit, kItems>& logits, Result& result) const {
    const float highest = Keys::value(result.key[0]);
    float sum_of_row = 0;
    if (!kOfChosen && rule.needs_row_total()) {
      float term[kItems];
#pragma unroll
      for (int i = 0; i < kItems; ++i) term[i] = rule.score_of(logits[i], highest);
      sum_of_row = port::tree_sum<kItems>(term);
    }
#pragma unroll
    for (float& weight : result.weight) weight = 0;
#pragma unroll
    for (int rank = 0; rank < kMaxK; ++rank) {
      if (rank > 0 && rank >= out.top_k) break;
      const float logit = Keys::value(result.key[rank]);
      result.weight[rank] = kOfChosen ? exp_of_distance(logit, highest) : rule.score_of(logit, highest);
    }
    const float sum = port::tree_sum<kMaxK>(result.weight);
    const float divisor = kOfChosen ? sum : rule.divisor(sum, sum_of_row);
#pragma unroll
    for (int rank = 0; rank < kMaxK; ++rank) {
      if (rank > 0 && rank >= out.top_k) break;
      result.weight[rank] = rule.weight(result.weight[rank], divisor);
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
