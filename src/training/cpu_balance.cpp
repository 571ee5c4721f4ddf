#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "training/cpu.hpp"
#include "training/cpu_row.hpp"
#include "training/load.hpp"

namespace tokenyard::training {

void balance_on_cpu(const BalanceProblem& problem) {
  LoadSums sums{0, 0, INT64_MAX, 0, 0};
  for (int32_t e = 0; e < problem.num_experts; ++e) {
    const int64_t count = count_of(problem, e);
    sums.pairs += count;
    sums.highest = std::max(sums.highest, count);
    sums.lowest = std::min(sums.lowest, count);
    sums.idle += count == 0;
  }
  for (int32_t e = 0; e < problem.num_experts && problem.bias != nullptr; ++e) {
    problem.bias[e] +=
        problem.rate * static_cast<float>(direction(count_of(problem, e), sums.pairs, problem.num_experts));
  }
  if (problem.statistics == nullptr) return;
  CpuRow row(problem.num_experts);
  sums.entropy = row.sum(static_cast<size_t>(problem.num_experts), [&](size_t e) {
    return entropy_term(count_of(problem, static_cast<int32_t>(e)), sums.pairs);
  });
  write_statistics(problem, sums);
}

}  // namespace tokenyard::training
