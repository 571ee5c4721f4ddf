// The scores of a row on the host, with the CPU's fused multiply-add where it has one.
#pragma once

#include <cstddef>

#include "tokenyard/tokenyard.h"

namespace tokenyard::gate {

// scores[i] of logits[i]; for softmax e^(logit - highest), to be divided by the row's total. NaN in, NaN out.
void score_row(ty_gate_score score, const float* logits, size_t count, float highest, float* scores);

}  // namespace tokenyard::gate
