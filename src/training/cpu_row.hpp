// A row of logits on the host, and sums over it in the order of the kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gate/cpu_scores.hpp"
#include "gate/weights.hpp"
#include "training/row.hpp"

namespace tokenyard::training {

// How many threads are worth their start.
inline int threads_for(int64_t tokens, int32_t experts, int cores) {
  constexpr int64_t kLogitsPerThread = 64 * 1024;  // some 100 µs, more than the start of a thread costs
  return static_cast<int>(std::clamp<int64_t>(tokens * experts / kLogitsPerThread, 1, std::max(cores, 1)));
}

class CpuRow {
 public:
  explicit CpuRow(int32_t experts)
      : logits(static_cast<size_t>(experts)),
        exponentials(logits.size()),
        terms_(std::bit_ceil(std::max(logits.size(), size_t{gate::kMaxTopK}))) {}

  void load(const Rows& rows, int64_t token) {
    highest = -gate::kInfinity;
    for (size_t e = 0; e < logits.size(); ++e) {
      logits[e] = rows.item(token, static_cast<int32_t>(e));
      highest = logits[e] > highest ? logits[e] : highest;
    }
  }

  // Of the distances to the highest logit, 0 for NaN; sets their total.
  void set_exponentials() {
    score(TY_GATE_SOFTMAX, logits, exponentials);
    total = sum(exponentials.size(), [&](size_t e) { return exponentials[e]; });
  }

  // 0 where the logit is NaN.
  void score(ty_gate_score kind, const std::vector<float>& of, std::vector<float>& scores) const {
    gate::score_row(kind, of.data(), of.size(), highest, scores.data());
    for (float& score : scores) score = score == score ? score : 0;
  }

  // Of term(0) to term(count - 1), neighbours first.
  template <class Term>
  float sum(size_t count, Term term) {
    for (size_t i = 0; i < count; ++i) terms_[i] = term(i);
    return gate::tree_sum(terms_.data(), count);
  }

  std::vector<float> logits, exponentials;
  float highest = -gate::kInfinity;
  float total = 0;

 private:
  std::vector<float> terms_;
};

}  // namespace tokenyard::training
