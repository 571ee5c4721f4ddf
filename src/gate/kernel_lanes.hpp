// gate with a token in the registers of a few lanes: kLanes of them, each with kItems neighbouring experts.
//
//   logits ─▶ selection values, in registers ─▶ groups: those that are not kept lose theirs
//   the K-th highest of what each part of a lane has at most: K experts are at least that good
//   values above that bound, and the first K of its equals ─▶ survivors, few, in shared memory
//   each survivor counts those before it: its rank ─▶ the lane of that rank weighs it
//
// However the values lie, each part holds few survivors: ties and NaN take no other way.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gate/kernel_weights.hpp"
#include "gate/order.hpp"
#include "gate/outputs.hpp"
#include "gate/score.hpp"
#include "gate/selection.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// What experts are selected by.
enum class Selection { kLogit, kSigmoid, kSqrtSoftplus };

template <class Logit, int kThreads, int kLanes, int kItems, Selection kSelection, bool kGrouped>
struct LanesGate {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr bool kBiased = kSelection != Selection::kLogit;

  // Parts whose highest values make the bound: at least as many as K may be.
  static constexpr int kParts = kLanes >= 32 ? 1 : 32 / kLanes;
  static constexpr int kPart = kItems / kParts;  // experts in one
  static constexpr int kMaxK = kLanes < 32 ? kLanes : 32;
  // K - 1 parts may hold nothing but values above the bound, and K of its equals are kept.
  // In slots of their own, and a step more.
  static constexpr int kMaxSurvivors = port::min_of((kMaxK - 1) * kPart + kMaxK, kLanes* kItems);
  static constexpr int kStep = 4;
  static constexpr int kSlots = kMaxSurvivors + kStep;
  static constexpr uint64_t kNobody = 0xff800000'7fffffff;  // -inf, and an id above all
  static constexpr int kTokens = kThreads / kLanes;         // of a block

  template <class Thread>
  struct Shared {
    typename Thread::template array<float, kTokens * kLanes * kParts> highest_of_part;
    typename Thread::template array<uint64_t, kTokens * kSlots> survivor;  // value, expert
    typename Thread::template array<int32_t, kTokens * kMaxK> ranked_expert;
  };

  const Logit* logits;
  int64_t row_stride;
  int32_t num_tokens;
  int32_t num_experts;
  const void* bias;
  bool bias_is_float32;
  bool is_aligned;  // lanes may load their experts at once
  int32_t kept_groups;
  int32_t group_lanes;  // a power of two
  ty_gate_group_score group_score;
  WeightRule rule;
  Outputs out;

  explicit LanesGate(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        row_stride(problem.row_stride),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        num_experts(problem.num_experts),
        bias(problem.bias),
        bias_is_float32(problem.bias_dtype == TY_FLOAT32),
        is_aligned(problem.num_experts % kItems == 0 &&
                   is_aligned_for(problem.logits, sizeof(Logit), problem.row_stride) &&
                   is_aligned_for(problem.bias, bias_is_float32 ? sizeof(float) : sizeof(Logit), 0)),
        kept_groups(problem.kept_groups),
        group_lanes(problem.group_size() / kItems),
        group_score(problem.group_score),
        rule(problem),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const int64_t first = static_cast<int64_t>(gpu.block()) * kTokens;
    if (first + gpu.warp() * (Thread::warp_size / kLanes) >= num_tokens) return;  // the whole warp
    const int64_t token = first + gpu.thread() / kLanes;
    Row<Thread>(*this, gpu, token).choose();
  }

 private:
  // Whether lanes may load `kItems` of these at once, up to 16 bytes.
  static bool is_aligned_for(const void* address, size_t element, int64_t stride) {
    const size_t bytes = std::min(kItems * element, size_t{16});
    return reinterpret_cast<uintptr_t>(address) % bytes == 0 &&
           static_cast<size_t>(stride) * element % bytes == 0;
  }

  // One token, by its lanes. Every lane of the warp goes the whole way, whether its token exists or not.
  template <class Thread>
  class Row {
   public:
    TY_DEVICE Row(const LanesGate& gate, Thread& gpu, int64_t token)
        : gate_(gate),
          gpu_(gpu),
          token_(token),
          exists_(token < gate.num_tokens),
          lane_(gpu.lane() % kLanes),
          first_(lane_ * kItems),
          slot_(gpu.thread() / kLanes),
          row_(gate.logits + (exists_ ? token : gate.num_tokens - 1) * gate.row_stride),
          shared_(gpu.template shared<Shared<Thread>>()) {}

    TY_DEVICE void choose() {
      load(row_, value_);
      if constexpr (kBiased) {
        select_by_score();
      } else {
        if (gate_.rule.needs_row_total()) add_up_row();
        without_nan();
      }
      if constexpr (kGrouped) {
        const float second_best = mask_groups();
        const bool too_few = 2 * gate_.kept_groups < gate_.out.top_k;  // else two of each group are that good
        rank(keep_survivors(too_few ? bound() : second_best, too_few));
      } else {
        rank(keep_survivors(bound(), true));
      }
      weigh();
    }

   private:
    using Mask = typename Thread::lane_mask;

    // The lane's items of a row of experts; what is not there is -inf, and loses to any other by its id.
    template <class T>
    TY_DEVICE void load(const T* row, float (&items)[kItems]) const {
      constexpr int kPack = port::min_of(kItems, static_cast<int>(16 / sizeof(T)));
      struct alignas(kPack * sizeof(T)) Pack {
        T item[kPack];
      };
      if (gate_.is_aligned) {
#pragma unroll
        for (int i = 0; i < kItems; i += kPack) {
          if (first_ < gate_.num_experts) {
            const Pack pack = *reinterpret_cast<const Pack*>(row + first_ + i);
#pragma unroll
            for (int j = 0; j < kPack; ++j) items[i + j] = port::to_float(pack.item[j]);
          } else {
#pragma unroll
            for (int j = 0; j < kPack; ++j) items[i + j] = -kInfinity;
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          items[i] = first_ + i < gate_.num_experts ? port::to_float(row[first_ + i]) : -kInfinity;
        }
      }
    }

    // Softmax, before selection: value_ holds the logits.
    TY_DEVICE void add_up_row() {
      highest_ = -kInfinity;
#pragma unroll
      for (int i = 0; i < kItems; ++i) highest_ = port::max(highest_, value_[i]);
      highest_ = port::lanes_max<kLanes>(gpu_, highest_);
      float term[kItems];
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        term[i] = value_[i] == value_[i] ? exp_of_distance(value_[i], highest_) : 0;
      }
      total_ = port::lanes_tree_sum<kLanes>(gpu_, port::tree_sum<kItems>(term));
    }

    TY_DEVICE void select_by_score() {
      float bias[kItems];
      if (gate_.bias_is_float32) {
        load(static_cast<const float*>(gate_.bias), bias);
      } else {
        load(static_cast<const Logit*>(gate_.bias), bias);
      }
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const float x = value_[i];
        const float score = kSelection == Selection::kSigmoid ? quick_sigmoid(gpu_, x) : sqrt_softplus(x);
        value_[i] = x == x ? score + bias[i] : -kInfinity;
      }
    }

    TY_DEVICE void without_nan() {
#pragma unroll
      for (int i = 0; i < kItems; ++i) value_[i] = port::max(value_[i], -kInfinity);
    }

    // The groups lie on whole numbers of lanes: each lane compares its group with some of the others. Returns
    // the lowest of the kept groups' second best values.
    TY_DEVICE float mask_groups() {
      float best = value_[0], second = -kInfinity;
#pragma unroll
      for (int i = 1; i < kItems; ++i) {
        second = port::max(second, port::min(best, value_[i]));
        best = port::max(best, value_[i]);
      }
      const int lanes = gate_.group_lanes;
      for (int mask = 1; mask < lanes; mask *= 2) {
        const float other_best = gpu_.shfl_xor(best, mask);
        const float other_second = gpu_.shfl_xor(second, mask);
        second = port::max(port::min(best, other_best), port::max(second, other_second));
        best = port::max(best, other_best);
      }
      const float mine = gate_.group_score == TY_GATE_GROUP_TOP2 ? sum_of_two(best, second) : best;
      const int first_of_token = gpu_.lane() - lane_;
      const int first_of_group = lane_ & -lanes;
      const Mask members = ((Mask{1} << (lanes - 1) << 1) - 1) << (first_of_token + first_of_group);
      int before = 0;
      for (int first = 0; first * kItems < gate_.num_experts; first += lanes * lanes) {
        const int other_first = first + (lane_ - first_of_group) * lanes;
        const bool there = other_first * kItems < gate_.num_experts;
        const float other = gpu_.shfl(mine, first_of_token + (there ? other_first : 0));
        const bool wins = there && (other > mine || (other == mine && other_first < first_of_group));
        before += gpu_.popcount(gpu_.ballot(wins) & members);
      }
      const bool is_kept = before < gate_.kept_groups;
      if (!is_kept) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) value_[i] = -kInfinity;
      }
      return lanes_min(is_kept ? second : kInfinity);
    }

    TY_DEVICE float lanes_min(float value) {
#pragma unroll
      for (int mask = 1; mask < kLanes; mask *= 2) value = port::min(value, gpu_.shfl_xor(value, mask));
      return value;
    }

    // K experts are at least this good: the K-th highest of the parts' best.
    TY_DEVICE float bound() {
      constexpr int kAll = kLanes * kParts;
      float best[kParts];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        best[part] = value_[part * kPart];
#pragma unroll
        for (int i = 1; i < kPart; ++i) best[part] = port::max(best[part], value_[part * kPart + i]);
        shared_.highest_of_part(slot_ * kAll + part * kLanes + lane_) = best[part];
      }
      gpu_.sync_warp();
      int before[kParts] = {};
#pragma unroll 8
      for (int i = 0; i < kAll; ++i) {
        const float other = shared_.highest_of_part(slot_ * kAll + i);
#pragma unroll
        for (int part = 0; part < kParts; ++part) before[part] += other > best[part];
      }
      float lowest = kInfinity;
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        if (before[part] < gate_.out.top_k) lowest = port::min(lowest, best[part]);
      }
      return lanes_min(lowest);
    }

    // Puts the survivors into shared memory, in any order; returns their number. A bound that is not of the
    // parts may let too many survive: then that one is taken.
    TY_DEVICE int keep_survivors(float bound, bool is_of_parts) {
      int counted = 0;
#pragma unroll
      for (int i = 0; i < kItems; ++i) counted += value_[i] >= bound;
      int below = inclusive_sum(counted);
      const int all = gpu_.shfl(below, gpu_.lane() - lane_ + kLanes - 1);
      const bool fit = all <= kMaxSurvivors;
      if (fit) {
        int at = below - counted;
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          if (value_[i] >= bound) put_survivor(at, i);
          at += value_[i] >= bound;
        }
      }
      int kept = all;
      if (gpu_.any(!fit)) {
        const int few = keep_few_equals(is_of_parts ? bound : this->bound(), fit);
        kept = fit ? all : few;
      }
      // Ranks are counted by four.
      if (lane_ < kStep) shared_.survivor(slot_ * kSlots + kept + lane_) = kNobody;
      gpu_.sync_warp();
      return kept;
    }

    // Of the equals of the bound only the first K, so that the survivors fit whatever the values.
    TY_DEVICE int keep_few_equals(float bound, bool done) {
      int counted = 0;  // above the bound in the low half, equal to it in the high one
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        counted += (value_[i] > bound ? 1 : 0) + (value_[i] == bound ? 1 << 16 : 0);
      }
      int below = inclusive_sum(counted);
      const int all = gpu_.shfl(below, gpu_.lane() - lane_ + kLanes - 1);
      below -= counted;
      const int above = all & 0xffff;
      int next_above = below & 0xffff;
      int next_equal = below >> 16;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const bool is_above = value_[i] > bound;
        const bool is_equal = value_[i] == bound;
        if (!done && is_above) put_survivor(next_above, i);
        if (!done && is_equal && next_equal < gate_.out.top_k) put_survivor(above + next_equal, i);
        next_above += is_above;
        next_equal += is_equal;
      }
      return above + port::min_of(all >> 16, gate_.out.top_k);
    }

    // Over the lanes of the token.
    TY_DEVICE int inclusive_sum(int value) {
#pragma unroll
      for (int delta = 1; delta < kLanes; delta *= 2) {
        const int other = gpu_.shfl_up(value, delta);
        if (lane_ >= delta) value += other;
      }
      return value;
    }

    TY_DEVICE void put_survivor(int at, int item) {
      shared_.survivor(slot_ * kSlots + at) = static_cast<uint64_t>(std::bit_cast<uint32_t>(value_[item]))
                                                  << 32 |
                                              static_cast<uint32_t>(first_ + item);
    }

    TY_DEVICE void rank(int survivors) {
      for (int i = lane_; i < survivors; i += kLanes) {
        const uint64_t mine = shared_.survivor(slot_ * kSlots + i);
        const auto expert = static_cast<int32_t>(mine);
        const float value = value_of_survivor(mine);
        int before = 0;
        for (int j = 0; j < survivors; j += kStep) {
#pragma unroll
          for (int k = 0; k < kStep; ++k) {
            const uint64_t other = shared_.survivor(slot_ * kSlots + j + k);
            const float other_value = value_of_survivor(other);
            before += other_value > value || (other_value == value && static_cast<int32_t>(other) < expert);
          }
        }
        if (before < gate_.out.top_k) shared_.ranked_expert(slot_ * kMaxK + before) = expert;
      }
      gpu_.sync_warp();
    }

    static TY_DEVICE float value_of_survivor(uint64_t survivor) {
      return std::bit_cast<float>(static_cast<uint32_t>(survivor >> 32));
    }

    TY_DEVICE void weigh() {
      const bool is_real = exists_ && gate_.out.is_real(token_);
      ChosenOfLane<1> mine{};
      if (lane_ < gate_.out.top_k) {
        mine.expert[0] = shared_.ranked_expert(slot_ * kMaxK + lane_);
        mine.logit[0] = port::to_float(row_[mine.expert[0]]);
      }
      write_weights<kLanes>(gpu_, gate_.rule, gate_.out, is_real ? token_ : -1, mine, highest_, total_);
      if (!exists_ || is_real) return;
      for (int column = lane_; column < gate_.out.columns; column += kLanes) {
        gate_.out.put_padding(token_, column);
      }
    }

    const LanesGate& gate_;
    Thread& gpu_;
    const int64_t token_;
    const bool exists_;
    const int lane_, first_, slot_;
    const Logit* const row_;
    Shared<Thread>& shared_;
    float value_[kItems];  // logits, then selection values
    float highest_ = 0, total_ = 0;
  };
};

}  // namespace tokenyard::gate
