#include "gate/cpu_scores.hpp"

#include "gate/score.hpp"

namespace tokenyard::gate {
namespace {

template <class Score>
inline void for_each(const float* logits, size_t count, float* scores, Score score) {
  for (size_t i = 0; i < count; ++i) scores[i] = score(logits[i]);
}

inline void score_all(ty_gate_score kind, const float* logits, size_t count, float highest, float* scores) {
  switch (kind) {
    case TY_GATE_SOFTMAX:
      return for_each(logits, count, scores, [=](float x) { return exp_of_distance(x, highest); });
    case TY_GATE_SIGMOID:
      return for_each(logits, count, scores, sigmoid);
    case TY_GATE_SQRT_SOFTPLUS:
      return for_each(logits, count, scores, sqrt_softplus);
  }
}

using ScoreRow = void (*)(ty_gate_score, const float*, size_t, float, float*);

#if defined(__x86_64__)
// fmaf() is a call on the oldest x86-64, and an instruction since 2013: the same bits, many times faster.
__attribute__((target("avx2,fma"), flatten)) void score_all_fma(ty_gate_score kind, const float* logits,
                                                                size_t count, float highest, float* scores) {
  score_all(kind, logits, count, highest, scores);
}
ScoreRow choose() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? score_all_fma : score_all;
}
#else
ScoreRow choose() { return score_all; }
#endif

}  // namespace

void score_row(ty_gate_score score, const float* logits, size_t count, float highest, float* scores) {
  static const ScoreRow fastest = choose();
  fastest(score, logits, count, highest, scores);
}

}  // namespace tokenyard::gate
