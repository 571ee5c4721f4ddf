// Runs gate_backward, router_loss and balance on a device through the C ABI, with poisoned, guarded buffers,
// and checks what came out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/call_memory.hpp"
#include "harness/training_problem.hpp"
#include "runtime/runtime.hpp"
#include "runtime/status.hpp"

namespace tokenyard::harness {

struct TrainingOptions {
  bool with_gradient = true;  // of the losses
  int misalignment = 0;       // elements by which every buffer is moved off its 256-byte alignment
  Stream stream = nullptr;    // fills memory: see AlignOptions
};

// Like GateRun: create, poison, launch, synchronise, collect. A launch may take the inputs of another run of
// the same shape.
class BackwardRun {
 public:
  static Status create(ty_device device, const BackwardProblem& problem, const TrainingOptions& options,
                       std::optional<BackwardRun>& run);
  Status poison() { return memory_.poison(); }
  Status launch(Stream stream) { return launch(stream, *this); }
  Status launch(Stream stream, const BackwardRun& inputs);
  Status collect(std::vector<float>& gradient);  // its numbers, widened to float32

 private:
  ty_device device_{};
  CallMemory memory_;
  ty_gate_backward_args args_ = TY_GATE_BACKWARD_ARGS_INIT;
};

struct LossOutputs {
  std::vector<float> losses;    // [2]
  std::vector<float> gradient;  // empty if not wanted
  std::vector<int32_t> counts;  // [sequences, experts]
};

class LossRun {
 public:
  static Status create(ty_device device, const LossProblem& problem, const TrainingOptions& options,
                       std::optional<LossRun>& run);
  Status poison() { return memory_.poison(); }
  Status launch(Stream stream) { return launch(stream, *this); }
  Status launch(Stream stream, const LossRun& inputs);
  Status collect(LossOutputs& outputs);

 private:
  ty_device device_{};
  CallMemory memory_;
  ty_router_loss_args args_ = TY_ROUTER_LOSS_ARGS_INIT;
};

struct BalanceOutputs {
  std::vector<float> bias, statistics;
};

// Each launch moves the bias on; poison() sets it back.
class BalanceRun {
 public:
  static Status create(ty_device device, const BalanceProblem& problem, const TrainingOptions& options,
                       std::optional<BalanceRun>& run);
  Status poison() { return memory_.poison(); }
  Status launch(Stream stream) { return launch(stream, *this); }
  Status launch(Stream stream, const BalanceRun& inputs);
  Status collect(BalanceOutputs& outputs);

 private:
  ty_device device_{};
  CallMemory memory_;
  ty_balance_args args_ = TY_BALANCE_ARGS_INIT;
};

// All of it: create, launch, wait, collect.
Status run_backward(ty_device device, const BackwardProblem& problem, const TrainingOptions& options,
                    std::vector<float>& gradient);
Status run_loss(ty_device device, const LossProblem& problem, const TrainingOptions& options,
                LossOutputs& outputs);
Status run_balance(ty_device device, const BalanceProblem& problem, const TrainingOptions& options,
                   BalanceOutputs& outputs);

// "" if equal to the last bit, else the first difference.
std::string difference(const std::vector<float>& got, const std::vector<float>& want);
std::string difference(const LossOutputs& got, const LossOutputs& want);
std::string difference(const BalanceOutputs& got, const BalanceOutputs& want);

// "" if each number is the reference's, rounded as often as its terms, and to the type of the logits.
std::string difference(const std::vector<float>& got, const training::ReferenceGradient& want,
                       ty_dtype dtype);

// "" if the outputs are what the contract says, checked against the float64 reference. Where it promises no
// exactness, because a score is no normal float32 number, gradients must be finite.
std::string broken_promise(const BackwardProblem& problem, const std::vector<float>& gradient);
std::string broken_promise(const LossProblem& problem, const LossOutputs& outputs);
std::string broken_promise(const BalanceProblem& problem, const BalanceOutputs& outputs);

}  // namespace tokenyard::harness
