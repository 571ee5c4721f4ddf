// gate for few experts without a bias: a thread a token, all in registers, no thread needs another.
//
//   logits ─▶ K times: the best that is left, the lower id of equals ─▶ weights
#pragma once

#include <cstdint>

#include "gate/outputs.hpp"
#include "gate/score.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// kItems: how many experts there may be; a power of two.
template <class Logit, int kThreads, int kItems>
struct ThreadGate {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {};

  const Logit* logits;
  int64_t row_stride;
  int32_t num_tokens;
  int32_t num_experts;
  bool is_aligned;
  WeightRule rule;
  Outputs out;

  explicit ThreadGate(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        row_stride(problem.row_stride),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        num_experts(problem.num_experts),
        is_aligned(problem.num_experts == kItems &&
                   reinterpret_cast<uintptr_t>(problem.logits) % sizeof(Pack) == 0 &&
                   static_cast<size_t>(problem.row_stride) * sizeof(Logit) % sizeof(Pack) == 0),
        rule(problem),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const int64_t token = static_cast<int64_t>(gpu.block()) * kThreads + gpu.thread();
    if (token >= num_tokens) return;
    if (!out.is_real(token)) {
      for (int column = 0; column < out.columns; ++column) out.put_padding(token, column);
      return;
    }
    float logit[kItems];
    load(logits + token * row_stride, logit);
    float highest = -kInfinity;
    float total = 0;
    if (rule.needs_row_total()) total = row_total(logit, highest);

    float chosen[kItems];
    int32_t expert[kItems];
    choose(logit, chosen, expert);
    write(gpu, token, chosen, expert, highest, total);
  }

 private:
  static constexpr int kPackItems = port::min_of(kItems, static_cast<int>(16 / sizeof(Logit)));
  struct alignas(kPackItems * sizeof(Logit)) Pack {
    Logit item[kPackItems];
  };

  TY_DEVICE void load(const Logit* row, float (&logit)[kItems]) const {
    if (is_aligned) {
#pragma unroll
      for (int i = 0; i < kItems; i += kPackItems) {
        const Pack pack = *reinterpret_cast<const Pack*>(row + i);
#pragma unroll
        for (int j = 0; j < kPackItems; ++j) logit[i + j] = port::to_float(pack.item[j]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kItems; ++i) logit[i] = i < num_experts ? port::to_float(row[i]) : -kInfinity;
    }
  }

  TY_DEVICE float row_total(const float (&logit)[kItems], float& highest) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) highest = port::max(highest, logit[i]);
    float term[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) term[i] = rule.score_of(logit[i], highest);
    return port::tree_sum<kItems>(term);
  }

  // What is NaN counts as -inf; what was chosen or is not there is never chosen.
  TY_DEVICE void choose(const float (&logit)[kItems], float (&chosen)[kItems],
                        int32_t (&expert)[kItems]) const {
    uint32_t left = (uint32_t{1} << (num_experts - 1) << 1) - 1;
#pragma unroll
    for (int rank = 0; rank < kItems; ++rank) {
      chosen[rank] = 0;
      expert[rank] = 0;
      if (rank >= out.top_k) continue;
      float best = -kInfinity;
#pragma unroll
      for (int i = kItems - 1; i >= 0; --i) {
        const float value = port::max(logit[i], -kInfinity);
        if (value >= best && (left >> i & 1) != 0) {
          best = value;
          chosen[rank] = logit[i];
          expert[rank] = i;
        }
      }
      left &= ~(uint32_t{1} << expert[rank]);
    }
  }

  template <class Thread>
  TY_DEVICE void write(Thread& gpu, int64_t token, const float (&chosen)[kItems],
                       const int32_t (&expert)[kItems], float highest, float total) const {
    if (rule.softmax_of_chosen()) {
      highest = -kInfinity;
#pragma unroll
      for (int rank = 0; rank < kItems; ++rank) {
        if (rank < out.top_k) highest = port::max(highest, chosen[rank]);
      }
    }
    float weight[kItems];
#pragma unroll
    for (int rank = 0; rank < kItems; ++rank) {
      weight[rank] = rank < out.top_k ? rule.numerator(chosen[rank], highest) : 0;
    }
    const float divisor = rule.divisor(port::tree_sum<kItems>(weight), total);
#pragma unroll
    for (int rank = 0; rank < kItems; ++rank) {
      if (rank >= out.top_k) continue;
      weight[rank] = rule.weight(weight[rank], divisor);
      out.put_expert(gpu, token, rank, expert[rank], weight[rank]);
    }
    if (out.columns == out.top_k) return;
    const float shared = rule.shared_weight(port::tree_sum<kItems>(weight));
    for (int column = out.top_k; column < out.columns; ++column) {
      out.put(token, column, out.first_shared + column - out.top_k, shared);
    }
  }
};

}  // namespace tokenyard::gate
