#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "port/cpu_threads.hpp"
#include "training/cpu.hpp"
#include "training/cpu_row.hpp"
#include "training/loss_rule.hpp"

namespace tokenyard::training {
namespace {

void count_pairs(const RouterLossProblem& problem, int32_t first, int32_t end) {
  const Sequences sequences(problem);
  for (int32_t token = first; token < end; ++token) {
    const int32_t sequence = sequences.of(token);
    for (int32_t k = 0; k < problem.top_k && sequence >= 0; ++k) {
      const int64_t at = int64_t{token} * problem.num_columns + k;
      const int64_t id = problem.ids_are_int64 ? static_cast<const int64_t*>(problem.ids)[at]
                                               : static_cast<const int32_t*>(problem.ids)[at];
      if (id < 0 || id >= problem.num_experts) continue;
      std::atomic_ref(problem.counts[int64_t{sequence} * problem.num_experts + id])
          .fetch_add(1, std::memory_order_relaxed);
    }
  }
}

// One token after the other; the loads of a sequence are kept from one to the next.
class Losses {
 public:
  explicit Losses(const RouterLossProblem& problem)
      : problem_(problem),
        rule_(problem),
        sequences_(problem),
        logits_(problem.logits, problem.logits_dtype, problem.row_stride, problem.num_experts),
        logits_grad_(problem.logits_grad, problem.logits_dtype, problem.num_experts, problem.num_experts),
        row_(problem.num_experts),
        scores_(row_.logits.size()),
        seconds_(row_.logits.size()),
        loads_(row_.logits.size()) {}

  TokenLoss loss_of(int32_t token) {
    const int32_t sequence = sequences_.of(token);
    if (sequence < 0) {
      std::fill(seconds_.begin(), seconds_.end(), 0.0f);
      store(token, seconds_);
      return {};
    }
    if (sequence != sequence_) enter(sequence);
    row_.load(logits_, token);
    if (rule_.needs_softmax()) row_.set_exponentials();
    TokenSums sums{row_.highest, row_.total, row_.total, 0};
    if (rule_.score == TY_GATE_SOFTMAX) {
      scores_ = row_.exponentials;
    } else {
      row_.score(rule_.score, row_.logits, scores_);
      for (float& score : scores_) score = bounded(score);
      sums.scores = row_.sum(scores_.size(), [&](size_t e) { return scores_[e]; });
    }
    sums.loads = row_.sum(scores_.size(), [&](size_t e) { return scores_[e] * loads_[e]; });
    const TokenLoss loss(rule_, factors_, sums);
    if (problem_.logits_grad != nullptr) write_gradient(token, loss);
    return loss;
  }

 private:
  void enter(int32_t sequence) {
    sequence_ = sequence;
    factors_ = SequenceFactors(rule_, sequences_, sequence);
    if (problem_.counts == nullptr) return;
    const int32_t* counts = problem_.counts + int64_t{sequence} * problem_.num_experts;
    const float pairs = row_.sum(loads_.size(), [&](size_t e) { return static_cast<float>(counts[e]); });
    const float each = LossRule::load_of_pair(pairs, problem_.num_experts);
    for (size_t e = 0; e < loads_.size(); ++e) loads_[e] = static_cast<float>(counts[e]) * each;
  }

  void write_gradient(int32_t token, const TokenLoss& loss) {
    if (rule_.score != TY_GATE_SOFTMAX) {
      for (size_t e = 0; e < seconds_.size(); ++e) {
        seconds_[e] = second_argument(rule_.score, row_.logits[e]);
      }
      row_.score(TY_GATE_SIGMOID, seconds_, seconds_);
    }
    for (size_t e = 0; e < seconds_.size(); ++e) {
      const float logit = row_.logits[e];
      float slope = scores_[e];
      if (rule_.score != TY_GATE_SOFTMAX) slope = slope_of(rule_.score, logit, scores_[e], seconds_[e]);
      seconds_[e] = logit == logit ? loss.gradient(row_.exponentials[e], slope, loads_[e]) : 0;
    }
    store(token, seconds_);
  }

  void store(int32_t token, const std::vector<float>& gradient) {
    if (problem_.logits_grad == nullptr) return;
    for (size_t e = 0; e < gradient.size(); ++e) {
      logits_grad_.store_item(token, static_cast<int32_t>(e), gradient[e]);
    }
  }

  const RouterLossProblem& problem_;
  const LossRule rule_;
  const Sequences sequences_;
  const Rows logits_, logits_grad_;
  CpuRow row_;
  std::vector<float> scores_, seconds_, loads_;
  int32_t sequence_ = -1;
  SequenceFactors factors_;
};

// The sums over the tokens of some runs, as the kernels leave them in scratch.
void add_up_runs(const RouterLossProblem& problem, int64_t first, int64_t end) {
  Losses losses(problem);
  for (int64_t run = first; run < end; ++run) {
    std::array<float, TY_ROUTER_LOSS_RUN> balance{}, z{};
    const int64_t begin = run * TY_ROUTER_LOSS_RUN;
    const int64_t tokens = std::min<int64_t>(TY_ROUTER_LOSS_RUN, problem.num_tokens - begin);
    for (int64_t i = 0; i < tokens; ++i) {
      const TokenLoss loss = losses.loss_of(static_cast<int32_t>(begin + i));
      balance[static_cast<size_t>(i)] = loss.balance;
      z[static_cast<size_t>(i)] = loss.z;
    }
    problem.scratch[run] = gate::tree_sum(balance.data(), balance.size());
    problem.scratch[problem.runs() + run] = gate::tree_sum(z.data(), z.size());
  }
}

}  // namespace

void losses_on_cpu(const RouterLossProblem& problem, int cores) {
  const int64_t runs = problem.runs();
  const int threads = threads_for(problem.num_tokens, problem.num_experts, cores);
  const auto share_of = [=](int64_t all, int rank) { return all * rank / threads; };
  if (problem.ids != nullptr) {
    run_on_threads(threads, [&](int rank) {
      count_pairs(problem, static_cast<int32_t>(share_of(problem.num_tokens, rank)),
                  static_cast<int32_t>(share_of(problem.num_tokens, rank + 1)));
    });
  }
  run_on_threads(threads,
                 [&](int rank) { add_up_runs(problem, share_of(runs, rank), share_of(runs, rank + 1)); });
  std::vector<float> sums(std::bit_ceil(std::max<size_t>(static_cast<size_t>(runs), 1)));
  for (int which = 0; which < 2; ++which) {
    std::copy_n(problem.scratch + which * runs, runs, sums.begin());
    const float sum = runs == 0 ? 0 : gate::tree_sum(sums.data(), static_cast<size_t>(runs));
    problem.losses[which] = LossRule(problem).mean(which, sum, Sequences(problem));
  }
}

}  // namespace tokenyard::training
