// The router's training on the host's cores: tokens are shared out to threads, at most one a core.
#pragma once

#include "training/contract.hpp"

namespace tokenyard::training {

void backward_on_cpu(const GateBackwardProblem& problem, int cores);
void losses_on_cpu(const RouterLossProblem& problem, int cores);
void balance_on_cpu(const BalanceProblem& problem);

}  // namespace tokenyard::training
