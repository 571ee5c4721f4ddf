// How even the load of the experts is, and which way a bias goes.
#pragma once

#include <cstdint>

#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/slope.hpp"

namespace tokenyard::training {

// What is known of all counts.
struct LoadSums {
  int64_t pairs;
  int64_t highest, lowest;
  int64_t idle;
  float entropy;  // natural
};

TY_DEVICE int64_t count_of(const BalanceProblem& problem, int32_t expert) {
  return problem.counts_are_int64 ? static_cast<const int64_t*>(problem.counts)[expert]
                                  : static_cast<const int32_t*>(problem.counts)[expert];
}

// What one expert adds to the entropy.
TY_DEVICE float entropy_term(int64_t count, int64_t pairs) {
  if (count <= 0) return 0;
  const float share = static_cast<float>(count) / static_cast<float>(pairs);
  return 0.0f - share * log_of(share, 0);
}

// sign(pairs / experts - count), without rounding.
TY_DEVICE int32_t direction(int64_t count, int64_t pairs, int32_t experts) {
  const int64_t mean = pairs / experts;
  if (count != mean) return count < mean ? 1 : -1;
  return pairs % experts > 0 ? 1 : 0;
}

TY_DEVICE void write_statistics(const BalanceProblem& problem, const LoadSums& sums) {
  const bool any = sums.pairs > 0;
  const auto experts = static_cast<float>(problem.num_experts);
  const float each = any ? experts / static_cast<float>(sums.pairs) : 0;
  float entropy = any ? 1 : 0;
  if (problem.num_experts > 1) entropy = sums.entropy / log_of(experts, 0);
  problem.statistics[TY_LOAD_MAX] = static_cast<float>(sums.highest) * each;
  problem.statistics[TY_LOAD_MIN] = static_cast<float>(sums.lowest) * each;
  problem.statistics[TY_LOAD_ENTROPY] = entropy;
  problem.statistics[TY_LOAD_IDLE] = static_cast<float>(sums.idle) / experts;
}

}  // namespace tokenyard::training
