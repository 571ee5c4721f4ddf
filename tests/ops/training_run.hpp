// Runs gate_backward, router_loss and balance on a device through the C ABI, with poisoned, guarded buffers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/gate_problem.hpp"
#include "harness/guarded_buffer.hpp"
#include "tokenyard/tokenyard.h"
#include "training/reference.hpp"

namespace tokenyard::test {

// What gate was given and gave, and the gradient of its weights.
struct BackwardProblem {
  harness::GateProblem forward;
  std::vector<int64_t> ids;         // [tokens, columns]
  std::vector<float> weights_grad;  // likewise
};

BackwardProblem draw_backward(const harness::GateShape& shape);

// What comes out: the gradient's numbers, widened to float32.
std::vector<float> backward_on(const std::string& device, const BackwardProblem& problem,
                               int misalignment = 0);

training::ReferenceGradient backward_of_reference(const BackwardProblem& problem);

struct LossProblem {
  BackwardProblem chosen;
  float balance_coefficient = 0.01f;
  float z_coefficient = 0.001f;
  std::vector<int32_t> sequence_offsets;  // empty: one sequence, of all tokens
  bool counts_are_given = false;

  std::vector<int32_t> offsets() const;  // never empty
};

LossProblem draw_loss(const harness::GateShape& shape, int32_t sequences);

struct LossOutputs {
  std::vector<float> losses;    // [2]
  std::vector<float> gradient;  // empty if not wanted
  std::vector<int32_t> counts;  // [sequences, experts]
};

LossOutputs losses_on(const std::string& device, const LossProblem& problem, bool with_gradient = true,
                      int misalignment = 0);

// The same, but for what the offsets on the device say; counts must be given, for as many sequences.
LossOutputs losses_with_offsets(const std::string& device, const LossProblem& problem,
                                const std::vector<int32_t>& offsets);

training::ReferenceLoss loss_of_reference(const LossProblem& problem);

struct BalanceOutputs {
  std::vector<float> bias, statistics;
};

BalanceOutputs balance_on(const std::string& device, const std::vector<int64_t>& counts, bool int64_counts,
                          float rate, const std::vector<float>& bias);

// "" if each number is the reference's, rounded as often as its terms, and to the type of the logits.
std::string difference(const std::vector<float>& got, const training::ReferenceGradient& want,
                       ty_dtype dtype);

// "" if equal to the last bit.
std::string difference(const std::vector<float>& got, const std::vector<float>& want);
std::string difference(const LossOutputs& got, const LossOutputs& want);

}  // namespace tokenyard::test
