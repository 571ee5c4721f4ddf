#include "gate/cpu.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <functional>
#include <vector>

#include "gate/cpu_scores.hpp"
#include "gate/order.hpp"
#include "gate/physical.hpp"
#include "gate/weights.hpp"
#include "port/cpu_threads.hpp"
#include "port/floats.hpp"

namespace tokenyard::gate {
namespace {

constexpr int64_t kLogitsPerThread = 64 * 1024;  // some 100 µs, more than the start of a thread costs

float load(const void* from, ty_dtype dtype, int64_t i) {
  switch (dtype) {
    case TY_BFLOAT16:
      return port::to_float(static_cast<const port::bfloat16*>(from)[i]);
    case TY_FLOAT16:
      return port::to_float(static_cast<const port::float16*>(from)[i]);
    default:
      return static_cast<const float*>(from)[i];
  }
}

void count_one(int32_t* counts, int32_t expert) {
  if (counts != nullptr) std::atomic_ref(counts[expert]).fetch_add(1, std::memory_order_relaxed);
}

// Chooses for one token after the other; holds what is used again from one to the next.
class Chooser {
 public:
  explicit Chooser(const Problem& problem)
      : problem_(problem),
        rule_(problem),
        table_(problem),
        experts_(static_cast<size_t>(problem.num_experts)),
        top_k_(static_cast<size_t>(problem.top_k)),
        logits_(experts_),
        scores_(std::bit_ceil(experts_)),
        terms_(std::bit_ceil(experts_)),
        bias_(problem.bias == nullptr ? 0 : experts_),
        keys_(experts_),
        groups_(static_cast<size_t>(problem.num_groups)),
        weights_(top_k_) {
    if (problem.bias == nullptr) return;
    for (size_t e = 0; e < experts_; ++e) {
      bias_[e] = load(problem.bias, problem.bias_dtype, static_cast<int64_t>(e));
    }
  }

  void choose(int64_t token) {
    read_row(token);
    if (by_score() || rule_.needs_row_total()) score();
    set_keys();
    if (problem_.num_groups > 1) mask_groups();
    std::partial_sort(keys_.begin(), keys_.begin() + problem_.top_k, keys_.end(), std::greater<>());
    weigh();
    write(token);
  }

  void pad(int64_t token) {
    for (int32_t column = 0; column < problem_.columns(); ++column) put(token, column, -1, 0);
  }

 private:
  // What selection needs beside the logits: the scores of all experts.
  bool by_score() const {
    return !bias_.empty() || (problem_.num_groups > 1 && problem_.group_score == TY_GATE_GROUP_TOP2);
  }

  void read_row(int64_t token) {
    highest_ = -kInfinity;
    for (size_t e = 0; e < experts_; ++e) {
      logits_[e] =
          load(problem_.logits, problem_.logits_dtype, token * problem_.row_stride + static_cast<int64_t>(e));
      highest_ = logits_[e] > highest_ ? logits_[e] : highest_;
    }
  }

  void score() {
    score_row(problem_.score, logits_.data(), experts_, highest_, scores_.data());
    if (problem_.score != TY_GATE_SOFTMAX) return;
    for (size_t e = 0; e < experts_; ++e) terms_[e] = scores_[e] == scores_[e] ? scores_[e] : 0;
    total_ = tree_sum(terms_.data(), experts_);
    if (bias_.empty()) return;
    for (size_t e = 0; e < experts_; ++e) scores_[e] = total_ > 0 ? scores_[e] / total_ : scores_[e];
  }

  // The high half is the selection value's, the low one grows with descending ids.
  uint64_t with_id(uint32_t key, size_t expert) const {
    return static_cast<uint64_t>(key) << 32 | (experts_ - 1 - expert);
  }
  size_t expert_of(uint64_t key) const { return experts_ - 1 - static_cast<uint32_t>(key); }

  void set_keys() {
    for (size_t e = 0; e < experts_; ++e) {
      keys_[e] = with_id(key_of(bias_.empty() ? logits_[e] : scores_[e] + bias_[e]), e);
    }
  }

  // Before the keys are sorted: keys_[e] is expert e's.
  float group_value(size_t group, size_t size) const {
    float best = -kInfinity, second = -kInfinity;
    for (size_t e = group * size; e < (group + 1) * size; ++e) {
      float value = value_of(static_cast<uint32_t>(keys_[e] >> 32));
      if (bias_.empty() && problem_.group_score == TY_GATE_GROUP_TOP2) {
        value = scores_[e] == scores_[e] ? scores_[e] : -kInfinity;
      }
      second = std::max(second, std::min(best, value));
      best = std::max(best, value);
    }
    return problem_.group_score == TY_GATE_GROUP_TOP2 ? sum_of_two(best, second) : best;
  }

  void mask_groups() {
    const auto size = static_cast<size_t>(problem_.group_size());
    const size_t last = groups_.size() - 1;
    for (size_t g = 0; g <= last; ++g) {
      groups_[g] = static_cast<uint64_t>(key_of(group_value(g, size))) << 32 | (last - g);
    }
    std::sort(groups_.begin(), groups_.end(), std::greater<>());
    for (size_t i = static_cast<size_t>(problem_.kept_groups); i <= last; ++i) {
      const size_t group = last - static_cast<uint32_t>(groups_[i]);
      for (size_t e = group * size; e < (group + 1) * size; ++e) keys_[e] = with_id(kLowestKey, e);
    }
  }

  void weigh() {
    float highest = highest_;
    if (rule_.softmax_of_chosen()) {
      highest = -kInfinity;
      for (size_t k = 0; k < top_k_; ++k) {
        const float logit = logits_[expert_of(keys_[k])];
        highest = logit > highest ? logit : highest;
      }
    }
    for (size_t k = 0; k < top_k_; ++k) {
      weights_[k] = rule_.numerator(ExactScores{}, logits_[expert_of(keys_[k])], highest);
    }
    const float divisor = rule_.divisor(sum_of_weights(), total_);
    for (float& weight : weights_) weight = rule_.weight(ExactScores{}, weight, divisor);
  }

  float sum_of_weights() {
    std::copy(weights_.begin(), weights_.end(), terms_.begin());
    return tree_sum(terms_.data(), top_k_);
  }

  void write(int64_t token) {
    for (int32_t k = 0; k < problem_.top_k; ++k) {
      const auto expert = static_cast<int32_t>(expert_of(keys_[static_cast<size_t>(k)]));
      const int32_t physical = table_.physical(token, expert);
      count_one(problem_.counts, expert);
      if (physical >= 0 && physical < problem_.num_physical_experts) {
        count_one(problem_.physical_counts, physical);
      }
      put(token, k, physical, weights_[static_cast<size_t>(k)]);
    }
    if (problem_.num_shared_experts == 0) return;
    const float shared = rule_.shared_weight(sum_of_weights());
    for (int32_t i = 0; i < problem_.num_shared_experts; ++i) {
      put(token, problem_.top_k + i, problem_.num_physical_experts + i, shared);
    }
  }

  void put(int64_t token, int32_t column, int32_t id, float weight) {
    const int64_t at = token * problem_.columns() + column;
    if (problem_.ids_are_int64) {
      static_cast<int64_t*>(problem_.ids)[at] = id;
    } else {
      static_cast<int32_t*>(problem_.ids)[at] = id;
    }
    problem_.weights[at] = weight;
  }

  const Problem& problem_;
  const WeightRule rule_;
  const ReplicaTable table_;
  const size_t experts_, top_k_;
  std::vector<float> logits_, scores_, terms_, bias_;
  std::vector<uint64_t> keys_, groups_;
  std::vector<float> weights_;
  float highest_ = 0;  // of the row's logits
  float total_ = 0;    // of the row's exponentials, with softmax
};

}  // namespace

int cpu_threads(const Problem& problem, int cores) {
  const int64_t logits = problem.num_tokens * problem.num_experts;
  return static_cast<int>(std::clamp<int64_t>(logits / kLogitsPerThread, 1, std::max(cores, 1)));
}

void choose_on_cpu(const Problem& problem, int threads) {
  const int64_t real = problem.num_real_tokens == nullptr
                           ? problem.num_tokens
                           : std::clamp<int64_t>(*problem.num_real_tokens, 0, problem.num_tokens);
  run_on_threads(threads, [&](int rank) {
    Chooser chooser(problem);
    const int64_t end = problem.num_tokens * (rank + 1) / threads;
    for (int64_t token = problem.num_tokens * rank / threads; token < end; ++token) {
      if (token < real) {
        chooser.choose(token);
      } else {
        chooser.pad(token);
      }
    }
  });
}

}  // namespace tokenyard::gate
