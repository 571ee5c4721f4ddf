// Problems for the router's training: gate_backward, router_loss and balance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/gate_problem.hpp"
#include "training/reference.hpp"

namespace tokenyard::harness {

// What gate was given and gave, and the gradient of its weights.
struct BackwardProblem {
  GateProblem forward;
  std::vector<int64_t> ids;         // [tokens, columns]
  std::vector<float> weights_grad;  // likewise
};

struct LossProblem {
  BackwardProblem chosen;
  float balance_coefficient = 0.01f;
  float z_coefficient = 0.001f;
  std::vector<int32_t> sequence_offsets;  // empty: one sequence, of all tokens
  std::vector<int32_t> given_counts;      // [sequences, experts]; empty: they are taken from the ids

  std::vector<int32_t> offsets() const;  // never empty
  std::vector<int32_t> counts() const;   // given or not
  int32_t num_sequences() const { return static_cast<int32_t>(offsets().size()) - 1; }
};

struct BalanceProblem {
  std::vector<int64_t> counts;  // [experts]
  bool int64_counts = false;
  float rate = 0.001f;
  std::vector<float> bias;  // [experts]; empty: none is given
};

// The shape must have no replicas, which would rename the ids.
BackwardProblem draw_backward(const GateShape& shape);

// A batch on which all three are run.
struct TrainingShape {
  GateShape gate;
  int32_t sequences = 0;  // with offsets; 0: one, of all tokens
  bool counts_are_given = false;
  float balance_coefficient = LossProblem().balance_coefficient;
  float z_coefficient = LossProblem().z_coefficient;

  std::string command() const;  // "tokenyard verify training --tokens … --seed …", which runs it again
};

// The losses of a batch that gate has chosen for, which is the problem for gate_backward.
LossProblem with_losses(const TrainingShape& shape, BackwardProblem chosen);
LossProblem draw(const TrainingShape& shape);

// Balances the load of a batch.
BalanceProblem balance_of(const BackwardProblem& chosen);

// A random shape for verify: every option of the contract is taken now and then.
TrainingShape draw_training_shape(uint64_t seed, int64_t max_logits);

training::ReferenceGradient reference(const BackwardProblem& problem);
training::ReferenceLoss reference(const LossProblem& problem);

}  // namespace tokenyard::harness
