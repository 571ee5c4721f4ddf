// The losses of the router: a pass over the logits, then a launch that adds up.
//
//   logits ─▶ sums over each token's experts ─▶ its losses ─▶ sums over runs of tokens, in scratch
//                                             └▶ its gradient
//   scratch ─▶ both losses
#pragma once

#include <cstdint>

#include "gate/score.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/loss_rule.hpp"
#include "training/row.hpp"

namespace tokenyard::training {

// A block a run of tokens; kWarps of it, 1 or all, a token.
template <int kThreads, int kWarps, int kItems, ty_gate_score kScore>
struct TokenLosses {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    typename Team<Thread, kWarps>::Partial partial;
    typename Thread::template array<float, TY_ROUTER_LOSS_RUN> balance, z;
  };

  Rows logits, logits_grad;
  const int32_t* counts;
  float* scratch;
  Sequences sequences;
  LossRule rule;

  explicit TokenLosses(const RouterLossProblem& problem)
      : logits(problem.logits, problem.logits_dtype, problem.row_stride, problem.num_experts),
        logits_grad(problem.logits_grad, problem.logits_dtype, problem.num_experts, problem.num_experts),
        counts(problem.counts),
        scratch(problem.scratch),
        sequences(problem),
        rule(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    constexpr int kTeams = kThreads / Team<Thread, kWarps>::kLanes;
    constexpr int kTokens = TY_ROUTER_LOSS_RUN / kTeams;  // of a team, neighbours
    RunOfTokens<Thread> run(*this, gpu, shared.partial);
    const int first = gpu.warp() / kWarps * kTokens;
    const auto token_of = [&](int i) { return gpu.block() * TY_ROUTER_LOSS_RUN + i; };
    float item[kItems], next[kItems];
    run.load(token_of(first), item);
#pragma unroll 1
    for (int i = first; i < first + kTokens; ++i) {
      if (i + 1 < first + kTokens) run.load(token_of(i + 1), next);  // under way while this one is computed
      const TokenLoss loss = run.loss_of(token_of(i), item);
      if (gpu.lane() == 0 && gpu.warp() % kWarps == 0) {
        shared.balance(i) = loss.balance;
        shared.z(i) = loss.z;
      }
#pragma unroll
      for (int j = 0; j < kItems; ++j) item[j] = next[j];
    }
    gpu.sync_block();
    if (gpu.warp() > 0) return;
    const auto add_up = [&](auto& losses, float* sum) {
      const bool has = gpu.lane() < TY_ROUTER_LOSS_RUN;
      const float all = port::lanes_tree_sum<Thread::warp_size>(
          gpu, has ? static_cast<float>(losses(gpu.lane())) : 0.0f, TY_ROUTER_LOSS_RUN);
      if (gpu.lane() == 0) *sum = all;
    };
    add_up(shared.balance, scratch + gpu.block());
    add_up(shared.z, scratch + gpu.blocks() + gpu.block());
  }

 private:
  // Tokens one after the other, by one team. The loads of a sequence are kept from one to the next.
  template <class Thread>
  class RunOfTokens {
   public:
    TY_DEVICE RunOfTokens(const TokenLosses& losses, Thread& gpu,
                          typename Team<Thread, kWarps>::Partial& partial)
        : losses_(losses), team_(gpu, partial), first_(team_.lane() * kItems) {}

    TY_DEVICE void load(int32_t token, float (&item)[kItems]) const {
      if (exists(token)) losses_.logits.load(token, first_, item);
    }

    // `item` holds the token's logits, then its gradient.
    TY_DEVICE TokenLoss loss_of(int32_t token, float (&item)[kItems]) {
      if (!exists(token)) return {};
      if (sequence_ < 0 || !losses_.sequences.has(sequence_, token)) enter(losses_.sequences.of(token));
      if (sequence_ < 0) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) item[i] = 0;
        store(token, item);
        return {};
      }
      TokenSums sums{-gate::kInfinity, 0, 0, 0};
      float exponential[kItems], score[kItems];
      add_up_exponentials(item, exponential, sums);
      add_up_scores(item, exponential, score, sums);
      const TokenLoss loss(losses_.rule, factors_, sums);
      if (losses_.logits_grad.data != nullptr) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
          const float x = item[i];
          item[i] = x == x ? loss.gradient(exponential[i], slope(x, score[i]), load_[i]) : 0;
        }
        store(token, item);
      }
      return loss;
    }

   private:
    TY_DEVICE bool exists(int32_t token) const { return token < losses_.sequences.num_tokens; }

    TY_DEVICE void enter(int32_t sequence) {
      sequence_ = sequence;
      if (sequence < 0) return;
      factors_ = SequenceFactors(losses_.rule, losses_.sequences, sequence);
      if (losses_.counts == nullptr) return;
      const int32_t* const counts = losses_.counts + int64_t{sequence} * losses_.logits.columns;
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        load_[i] = first_ + i < losses_.logits.columns ? static_cast<float>(counts[first_ + i]) : 0;
      }
      const float pairs = team_.sum(port::tree_sum<kItems>(load_));
      const float each = LossRule::load_of_pair(pairs, losses_.logits.columns);
#pragma unroll
      for (int i = 0; i < kItems; ++i) load_[i] *= each;
    }

    TY_DEVICE void add_up_exponentials(const float (&item)[kItems], float (&exponential)[kItems],
                                       TokenSums& sums) {
      if (!losses_.rule.needs_softmax()) {
#pragma unroll
        for (int i = 0; i < kItems; ++i) exponential[i] = 0;
        return;
      }
#pragma unroll
      for (int i = 0; i < kItems; ++i) sums.highest = item[i] > sums.highest ? item[i] : sums.highest;
      sums.highest = team_.max(sums.highest);
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        const float x = item[i];
        exponential[i] = x == x ? gate::exp_of_distance(x, sums.highest) : 0;
      }
      sums.total = team_.sum(port::tree_sum<kItems>(exponential));
    }

    TY_DEVICE void add_up_scores(const float (&item)[kItems], const float (&exponential)[kItems],
                                 float (&score)[kItems], TokenSums& sums) {
      float term[kItems];
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if constexpr (kScore == TY_GATE_SOFTMAX) {
          score[i] = exponential[i];
        } else {
          const float x = item[i];
          const float s = kScore == TY_GATE_SIGMOID ? gate::sigmoid(x) : gate::sqrt_softplus(x);
          score[i] = x == x ? bounded(s) : 0;
        }
        term[i] = score[i] * load_[i];
      }
      sums.scores = kScore == TY_GATE_SOFTMAX ? sums.total : team_.sum(port::tree_sum<kItems>(score));
      sums.loads = team_.sum(port::tree_sum<kItems>(term));
    }

    static TY_DEVICE float slope(float logit, float score) {
      if constexpr (kScore == TY_GATE_SOFTMAX) return score;
      return slope_of(kScore, logit, score, gate::sigmoid(second_argument(kScore, logit)));
    }

    TY_DEVICE void store(int32_t token, const float (&item)[kItems]) {
      if (losses_.logits_grad.data != nullptr) losses_.logits_grad.store(token, first_, item);
    }

    const TokenLosses& losses_;
    Team<Thread, kWarps> team_;
    const int32_t first_;
    int32_t sequence_ = -1;
    SequenceFactors factors_;
    float load_[kItems] = {};
  };
};

// A block for each of both losses: adds up the runs, neighbours first, a warp's width of them to one at a
// time.
template <int kThreads>
struct SumOfLosses {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {};

  float* scratch;
  float* losses;
  int64_t runs;
  Sequences sequences;
  LossRule rule;

  explicit SumOfLosses(const RouterLossProblem& problem)
      : scratch(problem.scratch),
        losses(problem.losses),
        runs(problem.runs()),
        sequences(problem),
        rule(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    constexpr int kWarp = Thread::warp_size;
    float* const sums = scratch + gpu.block() * runs;
    int64_t left = runs;
    do {
      for (int64_t first = 0; first < left; first += kThreads) {
        const int64_t i = first + gpu.thread();
        const float sum = port::lanes_tree_sum<kWarp>(gpu, i < left ? sums[i] : 0.0f);
        gpu.sync_block();  // sums come where others were read
        if (gpu.lane() == 0 && i < left) sums[i / kWarp] = sum;
      }
      gpu.sync_block();
      left = (left + kWarp - 1) / kWarp;
    } while (left > 1);
    if (gpu.thread() == 0)
      losses[gpu.block()] = rule.mean(gpu.block(), runs == 0 ? 0.0f : sums[0], sequences);
  }
};

}  // namespace tokenyard::training
