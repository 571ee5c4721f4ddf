// Both losses of one token and what they need of its sequence. Formulas: docs/training.md.
#pragma once

#include <cstdint>

#include "gate/score.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/slope.hpp"

namespace tokenyard::training {

// Which tokens a sequence has. The offsets are device memory and not checked: any of them stay inside the
// batch.
struct Sequences {
  const int32_t* offsets;  // nullptr: one, of all tokens
  int32_t count;
  int32_t num_tokens;

  explicit Sequences(const RouterLossProblem& problem)
      : offsets(problem.sequence_offsets),
        count(problem.num_sequences),
        num_tokens(static_cast<int32_t>(problem.num_tokens)) {}

  // That of a token, or -1.
  TY_DEVICE int32_t of(int32_t token) const {
    if (offsets == nullptr) return 0;
    int32_t low = 0, high = count;  // the last one that begins at the token or before is in [low, high)
    while (high - low > 1) {
      const int32_t middle = low + (high - low) / 2;
      (offsets[middle] <= token ? low : high) = middle;
    }
    return has(low, token) ? low : -1;
  }

  // The first token behind those that lie with this one in a sequence, or in none.
  TY_DEVICE int32_t next(int32_t sequence, int32_t token) const {
    if (offsets == nullptr) return num_tokens;
    if (sequence >= 0) return offsets[sequence + 1];
    return token < offsets[0] ? offsets[0] : num_tokens;
  }

  TY_DEVICE bool has(int32_t sequence, int32_t token) const {
    return offsets == nullptr || (offsets[sequence] <= token && token < offsets[sequence + 1]);
  }

  TY_DEVICE int32_t tokens(int32_t sequence) const { return between(sequence, sequence + 1); }
  TY_DEVICE int32_t tokens_of_all() const { return between(0, count); }

 private:
  // At least 1, so that it can divide.
  TY_DEVICE int32_t between(int32_t first, int32_t last) const {
    if (offsets == nullptr) return num_tokens > 0 ? num_tokens : 1;
    const int32_t begin = offsets[first] > 0 ? offsets[first] : 0;
    const int32_t end = offsets[last] < num_tokens ? offsets[last] : num_tokens;
    return end > begin ? end - begin : 1;
  }
};

// No score counts for more: that of +inf must not be lost in sums over 4096 experts. Others are below 2^65.
TY_DEVICE float bounded(float score) { return port::min(score, 0x1p100f); }

struct LossRule {
  ty_gate_score score;
  float balance, z;  // coefficients

  explicit LossRule(const RouterLossProblem& problem)
      : score(problem.score), balance(problem.balance_coefficient), z(problem.z_coefficient) {}

  // Whether the softmax over the row is needed, beside the scores.
  TY_DEVICE bool needs_softmax() const { return score == TY_GATE_SOFTMAX || z != 0; }

  // From the sum over all tokens to the loss: of balance (which is 0) or z (which is 1).
  TY_DEVICE float mean(int which, float sum, const Sequences& sequences) const {
    return which == 0 ? balance / static_cast<float>(sequences.count) * sum
                      : z / static_cast<float>(sequences.tokens_of_all()) * sum;
  }

  // The load of an expert over the even one, for each of its pairs; `pairs` are the sequence's.
  static TY_DEVICE float load_of_pair(float pairs, int32_t experts) {
    return pairs > 0 ? static_cast<float>(experts) / pairs : 0;
  }
};

// The sums over a token's experts that its losses are made of.
struct TokenSums {
  float highest;  // logit
  float total;    // of the exponentials of the distance to it
  float scores;   // of the scores; with softmax, of the same exponentials
  float loads;    // of score x load
};

// What the losses of a sequence's tokens have in common.
struct SequenceFactors {
  float share = 0;           // of a token in its sequence: 1 / tokens
  float balance = 0, z = 0;  // of a token in the loss, coefficients included

  SequenceFactors() = default;
  TY_DEVICE SequenceFactors(const LossRule& rule, const Sequences& sequences, int32_t sequence)
      : share(1.0f / static_cast<float>(sequences.tokens(sequence))),
        balance(rule.balance * share / static_cast<float>(sequences.count)),
        z(rule.z / static_cast<float>(sequences.tokens_of_all())) {}
};

// The losses of one token, before they are averaged, and its gradient
//   dL/dx = factors.balance (load - mean_load) slope / scores + z_factor x exponential
// where slope is the derivative of the score, of exponentials themselves with softmax.
struct TokenLoss {
  float balance = 0, z = 0;
  float mean_load = 0;
  float inverse_scores = 0;  // 0 where scores vanish: they have no loss
  float balance_factor = 0, z_factor = 0;

  TokenLoss() = default;
  TY_DEVICE TokenLoss(const LossRule& rule, const SequenceFactors& factors, const TokenSums& sums) {
    constexpr float kLeast = 0x1p-126f;  // whose inverse is a finite number
    if (rule.balance != 0 && sums.scores >= kLeast) {
      inverse_scores = 1.0f / sums.scores;
      mean_load = sums.loads * inverse_scores;
      balance = mean_load * factors.share;
      balance_factor = factors.balance;
    }
    if (rule.z != 0 && sums.total > 0) {
      const float log_sum = log_of(sums.total, sums.highest);
      z = log_sum * log_sum;
      // An infinite loss has no slope to follow.
      if (port::abs(log_sum) < gate::kInfinity) z_factor = 2.0f * factors.z * log_sum / sums.total;
    }
  }

  TY_DEVICE float gradient(float exponential, float slope, float load) const {
    const float of_balance = balance_factor * ((load - mean_load) * (slope * inverse_scores));
    return of_balance + z_factor * exponential;
  }
};

}  // namespace tokenyard::training
