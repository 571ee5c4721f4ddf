// What a kernel writes for a token.
#pragma once

#include <cstdint>

#include "gate/contract.hpp"
#include "gate/physical.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

struct Outputs {
  void* ids;
  float* weights;
  int32_t top_k;
  bool is_plain;    // nothing is asked for but int32 ids and weights of K experts a token
  int32_t columns;  // with shared experts
  int32_t first_shared;
  bool ids_are_int64;
  ReplicaTable table;
  int32_t* counts;                 // or nullptr
  int32_t* physical_counts;        // or nullptr
  const int32_t* num_real_tokens;  // or nullptr

  explicit Outputs(const Problem& problem)
      : ids(problem.ids),
        weights(problem.weights),
        top_k(problem.top_k),
        is_plain(!problem.ids_are_int64 && problem.num_shared_experts == 0 && problem.replicas == nullptr &&
                 problem.num_real_tokens == nullptr && problem.counts == nullptr &&
                 problem.physical_counts == nullptr),
        columns(problem.columns()),
        first_shared(problem.num_physical_experts),
        ids_are_int64(problem.ids_are_int64),
        table(problem),
        counts(problem.counts),
        physical_counts(problem.physical_counts),
        num_real_tokens(problem.num_real_tokens) {}

  TY_DEVICE bool is_real(int64_t token) const {
    return num_real_tokens == nullptr || token < *num_real_tokens;
  }

  TY_DEVICE void put_plain(uint32_t token, int32_t rank, int32_t expert, float weight) const {
    const uint32_t at = token * static_cast<uint32_t>(top_k) + static_cast<uint32_t>(rank);  // within int32
    static_cast<int32_t*>(ids)[at] = expert;
    weights[at] = weight;
  }

  // The two experts of a token at once.
  template <class T>
  struct alignas(2 * sizeof(T)) Pair {
    T first, second;
  };
  bool stores_plain_pairs() const {
    return is_plain && top_k == 2 && reinterpret_cast<uintptr_t>(ids) % sizeof(Pair<int32_t>) == 0 &&
           reinterpret_cast<uintptr_t>(weights) % sizeof(Pair<float>) == 0;
  }

  TY_DEVICE void put(int64_t token, int32_t column, int32_t id, float weight) const {
    const int64_t at = token * columns + column;
    if (ids_are_int64) {
      static_cast<int64_t*>(ids)[at] = id;
    } else {
      static_cast<int32_t*>(ids)[at] = id;
    }
    weights[at] = weight;
  }

  template <class Thread>
  TY_DEVICE void put_expert(Thread& gpu, int64_t token, int32_t rank, int32_t expert, float weight) const {
    const int32_t physical = table.physical(token, expert);
    put(token, rank, physical, weight);
    if (counts != nullptr) gpu.fetch_add(counts + expert, 1);
    if (physical_counts != nullptr && physical >= 0 && physical < first_shared) {
      gpu.fetch_add(physical_counts + physical, 1);
    }
  }

  // What a lane has of a token's row, without replicas or counts: one of its chosen experts, or one of a
  // padding token's columns, or nothing.
  TY_DEVICE void put_choice(int64_t token, bool is_real, int lane, int32_t rank, int32_t expert,
                            float weight) const {
    if (is_plain) [[likely]] {
      if (rank < top_k) put_plain(static_cast<uint32_t>(token), rank, expert, weight);
    } else if (is_real) {
      if (rank < top_k) put(token, rank, expert, weight);
    } else if (lane < top_k) {
      put_padding(token, lane);
    }
  }

  TY_DEVICE void put_padding(int64_t token, int32_t column) const { put(token, column, -1, 0); }
};

}  // namespace tokenyard::gate
