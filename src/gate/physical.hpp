// Which replica of an expert a token goes to.
#pragma once

#include <cstdint>

#include "gate/contract.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// The finaliser of MurmurHash3 (Appleby, public domain): every bit of the token's index reaches every bit.
TY_DEVICE uint32_t hash_of_token(uint32_t token) {
  token = (token ^ token >> 16) * 0x85ebca6bu;
  token = (token ^ token >> 13) * 0xc2b2ae35u;
  return token ^ token >> 16;
}

struct ReplicaTable {
  const int32_t* replicas;  // nullptr: experts are physical as they are
  const int32_t* num_replicas;
  int32_t max_replicas;

  explicit ReplicaTable(const Problem& problem)
      : replicas(problem.replicas), num_replicas(problem.num_replicas), max_replicas(problem.max_replicas) {}

  // The numbers of replicas are device memory and not checked: any stays inside the table.
  TY_DEVICE int32_t physical(int64_t token, int32_t expert) const {
    if (replicas == nullptr) return expert;
    const int32_t given = num_replicas[expert];
    const int32_t count = given < 1 ? 1 : given < max_replicas ? given : max_replicas;
    const uint64_t hash = hash_of_token(static_cast<uint32_t>(token));
    const auto which = static_cast<int32_t>(hash * static_cast<uint64_t>(count) >> 32);
    return replicas[static_cast<int64_t>(expert) * max_replicas + which];
  }
};

}  // namespace tokenyard::gate
