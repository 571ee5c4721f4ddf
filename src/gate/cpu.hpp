// gate on the host's cores: tokens are shared out to threads, each chooses with a partial sort of keys.
#pragma once

#include "gate/contract.hpp"

namespace tokenyard::gate {

// How many threads are worth their start.
int cpu_threads(const Problem& problem, int cores);

void choose_on_cpu(const Problem& problem, int threads);

}  // namespace tokenyard::gate
