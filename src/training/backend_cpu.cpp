// The router's training on the CPU.
#include "runtime/backend.hpp"
#include "training/cpu.hpp"

namespace tokenyard::training {
namespace {

Status run_backward(const DeviceProperties& cpu, const GateBackwardProblem& problem, Stream) {
  backward_on_cpu(problem, cpu.multiprocessors);
  return {};
}

Status run_loss(const DeviceProperties& cpu, const RouterLossProblem& problem, Stream) {
  losses_on_cpu(problem, cpu.multiprocessors);
  return {};
}

Status run_balance(const DeviceProperties&, const BalanceProblem& problem, Stream) {
  balance_on_cpu(problem);
  return {};
}

}  // namespace

TrainingOperations cpu_operations() { return {run_backward, run_loss, run_balance}; }

}  // namespace tokenyard::training
