// gate for any number of experts and any K: a warp a token, its keys in shared memory, and a time that
// depends on no value.
//
//   logits ─▶ scores ─▶ keys of all experts, in shared memory ─▶ groups: those that are not kept lose theirs
//   the K-th highest key, bit by bit: how many keys are at least that high?
//   higher keys, and the first of its equals ─▶ the K chosen, by id ─▶ each counts those before it: its rank
#pragma once

#include <cstdint>

#include "gate/kernel_weights.hpp"
#include "gate/order.hpp"
#include "gate/outputs.hpp"
#include "gate/selection.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// kExperts: how many there may be.
template <class Logit, int kThreads, int kExperts>
struct AnyGate {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    static constexpr int kWarps = kThreads / Thread::warp_size;
    typename Thread::template array<uint32_t, kWarps * kExperts> key;
    typename Thread::template array<uint32_t, kWarps * kMaxGroups> group_key;
    typename Thread::template array<uint32_t, kWarps * kMaxTopK> chosen_key;
    typename Thread::template array<int32_t, kWarps * kMaxTopK> chosen_expert;
    typename Thread::template array<int32_t, kWarps * kMaxTopK> ranked_expert;
  };

  const Logit* logits;
  int64_t row_stride;
  int32_t num_tokens;
  int32_t num_experts;
  int32_t num_groups, kept_groups;
  ty_gate_group_score group_score;
  const void* bias;
  bool bias_is_float32;
  WeightRule rule;
  Outputs out;

  explicit AnyGate(const Problem& problem)
      : logits(static_cast<const Logit*>(problem.logits)),
        row_stride(problem.row_stride),
        num_tokens(static_cast<int32_t>(problem.num_tokens)),
        num_experts(problem.num_experts),
        num_groups(problem.num_groups),
        kept_groups(problem.kept_groups),
        group_score(problem.group_score),
        bias(problem.bias),
        bias_is_float32(problem.bias_dtype == TY_FLOAT32),
        rule(problem),
        out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.let_next_begin();
    const int64_t step = static_cast<int64_t>(gpu.blocks()) * gpu.warps();
    for (int64_t token = static_cast<int64_t>(gpu.block()) * gpu.warps() + gpu.warp(); token < num_tokens;
         token += step) {
      if (out.is_real(token)) {
        Row<Thread>(*this, gpu, token).choose();
      } else {
        for (int column = gpu.lane(); column < out.columns; column += Thread::warp_size) {
          out.put_padding(token, column);
        }
      }
    }
  }

 private:
  TY_DEVICE float bias_of(int32_t expert) const {
    return bias_is_float32 ? static_cast<const float*>(bias)[expert]
                           : port::to_float(static_cast<const Logit*>(bias)[expert]);
  }

  // One token, by one warp.
  template <class Thread>
  class Row {
   public:
    TY_DEVICE Row(const AnyGate& gate, Thread& gpu, int64_t token)
        : gate_(gate),
          gpu_(gpu),
          token_(token),
          row_(gate.logits + token * gate.row_stride),
          shared_(gpu.template shared<Shared<Thread>>()),
          first_key_(gpu.warp() * kExperts),
          first_chosen_(gpu.warp() * kMaxTopK) {}

    TY_DEVICE void choose() {
      find_highest();
      set_scores();
      set_keys();
      if (gate_.num_groups > 1) mask_groups();
      collect(kth_key());
      rank();
      weigh();
    }

   private:
    static constexpr int kWarp = Thread::warp_size;
    using Mask = typename Thread::lane_mask;

    TY_DEVICE float logit(int32_t expert) const { return port::to_float(row_[expert]); }
    TY_DEVICE decltype(auto) key(int32_t expert) { return shared_.key(first_key_ + expert); }

    TY_DEVICE decltype(auto) group_key(int32_t group) {
      return shared_.group_key(gpu_.warp() * kMaxGroups + group);
    }

    TY_DEVICE void find_highest() {
      for (int32_t e = gpu_.lane(); e < gate_.num_experts; e += kWarp) {
        const float x = logit(e);
        highest_ = x > highest_ ? x : highest_;
      }
      highest_ = port::lanes_max<kWarp>(gpu_, highest_);
    }

    TY_DEVICE bool has_bias() const { return gate_.bias != nullptr; }

    // To select by, or to add up. With softmax not yet divided by the row's total.
    TY_DEVICE float score_of(float x) {
      if (!has_bias()) return quick_term(gpu_, x, highest_);
      if (gate_.rule.score == TY_GATE_SIGMOID) return safe_quick_sigmoid<Logit>(gpu_, x);
      return exact_score_of(x);
    }
    // 0 for NaN.
    TY_DEVICE float exact_score_of(float x) const {
      if (x != x) return 0;
      switch (gate_.rule.score) {
        case TY_GATE_SOFTMAX:
          return exp_of_distance(x, highest_);
        case TY_GATE_SIGMOID:
          return sigmoid(x);
        default:
          return sqrt_softplus(x);
      }
    }

    // Scores wait where their keys will be.
    TY_DEVICE void set_scores() {
      if (!has_bias() && !gate_.rule.needs_row_total()) return;
      for (int32_t e = gpu_.lane(); e < gate_.num_experts; e += kWarp) {
        key(e) = std::bit_cast<uint32_t>(score_of(logit(e)));
      }
      if (gate_.rule.score == TY_GATE_SOFTMAX) add_up_scores();
    }
    TY_DEVICE float score(int32_t e) { return std::bit_cast<float>(static_cast<uint32_t>(key(e))); }

    // Neighbours first: inside each warp's width of experts, then these sums.
    TY_DEVICE void add_up_scores() {
      const int32_t widths = (gate_.num_experts + kWarp - 1) / kWarp;
      for (int32_t width = 0; width < widths; ++width) {
        const int32_t e = width * kWarp + gpu_.lane();
        const float sum = port::lanes_tree_sum<kWarp>(gpu_, e < gate_.num_experts ? score(e) : 0.0f);
        if (gpu_.lane() == 0) group_key(width) = std::bit_cast<uint32_t>(sum);
      }
      gpu_.sync_warp();
      const auto sum = [&](int32_t i) { return std::bit_cast<float>(static_cast<uint32_t>(group_key(i))); };
      for (int32_t apart = 1; apart < widths; apart *= 2) {
        for (int32_t i = gpu_.lane() * 2 * apart; i + apart < widths; i += kWarp * 2 * apart) {
          group_key(i) = std::bit_cast<uint32_t>(sum(i) + sum(i + apart));
        }
        gpu_.sync_warp();
      }
      total_ = sum(0);
      gpu_.sync_warp();
    }

    TY_DEVICE void set_keys() {
      for (int32_t e = gpu_.lane(); e < gate_.num_experts; e += kWarp) {
        const float x = logit(e);
        float value = x;
        if (has_bias() && x == x) {
          value = (total_ > 0 ? score(e) / total_ : score(e)) + gate_.bias_of(e);
        }
        key(e) = key_of(value);
      }
      gpu_.sync_warp();
    }

    // Without a bias, two logits do not add up to anything: their scores do.
    TY_DEVICE float group_member(int32_t expert, bool by_score) {
      if (!by_score) return value_of(key(expert));
      const float x = logit(expert);
      return x == x ? exact_score_of(x) : -kInfinity;
    }

    TY_DEVICE void mask_groups() {
      const int32_t groups = gate_.num_groups;
      const int32_t size = gate_.num_experts / groups;
      const bool two = gate_.group_score == TY_GATE_GROUP_TOP2;
      for (int32_t g = gpu_.lane(); g < groups; g += kWarp) {
        float best = -kInfinity, second = -kInfinity;
        for (int32_t e = g * size; e < (g + 1) * size; ++e) {
          const float value = group_member(e, two && !has_bias());
          const float lower = value < best ? value : best;
          second = lower > second ? lower : second;
          best = value > best ? value : best;
        }
        group_key(g) = key_of(two ? sum_of_two(best, second) : best);
      }
      gpu_.sync_warp();
      for (int32_t g = gpu_.lane(); g < groups; g += kWarp) {
        const uint32_t mine = group_key(g);
        int32_t before = 0;
        for (int32_t other = 0; other < groups; ++other) {
          const uint32_t theirs = group_key(other);
          before += theirs > mine || (theirs == mine && other < g);
        }
        if (before < gate_.kept_groups) continue;
        for (int32_t e = g * size; e < (g + 1) * size; ++e) key(e) = kLowestKey;
      }
      gpu_.sync_warp();
    }

    // The highest key that K keys are not below.
    TY_DEVICE uint32_t kth_key() {
      uint32_t kth = 0;
      for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
        int32_t count = 0;
        for (int32_t e = gpu_.lane(); e < gate_.num_experts; e += kWarp) {
          count += static_cast<uint32_t>(key(e)) >= (kth | bit);
        }
        if (gpu_.reduce_add(count) >= gate_.out.top_k) kth |= bit;
      }
      return kth;
    }

    // The chosen in the order of their ids: all above the K-th key, and of its equals the first.
    TY_DEVICE void collect(uint32_t kth) {
      int32_t above = 0;
      for (int32_t e = gpu_.lane(); e < gate_.num_experts; e += kWarp) {
        above += static_cast<uint32_t>(key(e)) > kth;
      }
      int32_t equals_left = gate_.out.top_k - gpu_.reduce_add(above);
      int32_t slot = first_chosen_;
      for (int32_t first = 0; first < gate_.num_experts; first += kWarp) {
        const int32_t e = first + gpu_.lane();
        const uint32_t mine = e < gate_.num_experts ? static_cast<uint32_t>(key(e)) : 0;
        const Mask equals = gpu_.ballot(mine == kth);
        const bool is_chosen =
            mine > kth || (mine == kth && gpu_.popcount(equals & gpu_.lanes_below()) < equals_left);
        const Mask chosen = gpu_.ballot(is_chosen);
        if (is_chosen) {
          const int32_t at = slot + gpu_.popcount(chosen & gpu_.lanes_below());
          shared_.chosen_key(at) = mine;
          shared_.chosen_expert(at) = e;
        }
        slot += gpu_.popcount(chosen);
        equals_left -= gpu_.popcount(equals);
      }
      gpu_.sync_warp();
    }

    TY_DEVICE void rank() {
      for (int32_t i = gpu_.lane(); i < gate_.out.top_k; i += kWarp) {
        const uint32_t mine = shared_.chosen_key(first_chosen_ + i);
        int32_t before = 0;
        for (int32_t j = 0; j < gate_.out.top_k; ++j) {
          const uint32_t other = shared_.chosen_key(first_chosen_ + j);
          before += other > mine || (other == mine && j < i);
        }
        shared_.ranked_expert(first_chosen_ + before) =
            static_cast<int32_t>(shared_.chosen_expert(first_chosen_ + i));
      }
      gpu_.sync_warp();
    }

    TY_DEVICE void weigh() {
      constexpr int kSlots = kMaxTopK / kWarp;
      ChosenOfLane<kSlots> mine{};
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int32_t rank = gpu_.lane() + slot * kWarp;
        if (rank >= gate_.out.top_k) continue;
        mine.expert[slot] = shared_.ranked_expert(first_chosen_ + rank);
        mine.logit[slot] = logit(mine.expert[slot]);
      }
      write_weights<Logit, kWarp>(gpu_, gate_.rule, gate_.out, token_, mine, highest_, total_);
      gpu_.sync_warp();  // the next token's keys come where this one's were
    }

    const AnyGate& gate_;
    Thread& gpu_;
    const int64_t token_;
    const Logit* const row_;
    Shared<Thread>& shared_;
    const int32_t first_key_, first_chosen_;
    float highest_ = -kInfinity;
    float total_ = 0;
  };
};

}  // namespace tokenyard::gate
