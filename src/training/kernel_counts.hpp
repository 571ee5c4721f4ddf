// How often each expert was chosen in each sequence.
//
//   ids of a chunk of tokens ─▶ as far as they are of one sequence: counts in shared memory ─▶ added to its
//   counts
//
// Integers: whatever the order, the sums are the same.
#pragma once

#include <cstdint>

#include "gate/contract.hpp"
#include "port/port.hpp"
#include "training/contract.hpp"
#include "training/loss_rule.hpp"

namespace tokenyard::training {

// kTokens: of a chunk, which is a block's.
template <int kThreads, int kTokens>
struct SequenceCounts {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  struct Shared {
    typename Thread::template array<int32_t, gate::kMaxExperts> count;
  };

  const void* ids;
  int32_t* counts;
  int32_t num_experts;
  int32_t num_columns;
  int32_t top_k;
  bool ids_are_int64;
  Sequences sequences;

  explicit SequenceCounts(const RouterLossProblem& problem)
      : ids(problem.ids),
        counts(problem.counts),
        num_experts(problem.num_experts),
        num_columns(problem.num_columns),
        top_k(problem.top_k),
        ids_are_int64(problem.ids_are_int64),
        sequences(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    for (int32_t e = gpu.thread(); e < num_experts; e += kThreads) shared.count(e) = 0;
    gpu.sync_block();
    const int32_t end = port::min_of(sequences.num_tokens - gpu.block() * kTokens, kTokens);
    const int32_t chunk = gpu.block() * kTokens;
    for (int32_t first = 0; first < end;) {
      const int32_t sequence = sequences.of(chunk + first);
      const int32_t last = port::min_of(sequences.next(sequence, chunk + first) - chunk, end);
      if (sequence >= 0) add(gpu, shared, chunk + first, chunk + last, int64_t{sequence} * num_experts);
      first = last;
    }
  }

 private:
  static constexpr int kFewTokens = 16;  // whose pairs are not worth the way through shared memory

  template <class Thread>
  TY_DEVICE void add(Thread& gpu, Shared<Thread>& shared, int32_t first, int32_t end, int64_t row) const {
    if (end - first <= kFewTokens) {
      for_each_id(gpu, first, end, [&](int32_t id) { gpu.fetch_add(counts + row + id, 1); });
      return;
    }
    for_each_id(gpu, first, end, [&](int32_t id) { gpu.add(shared.count(id), 1); });
    gpu.sync_block();
    for (int32_t e = gpu.thread(); e < num_experts; e += kThreads) {
      const int32_t count = shared.count(e);
      if (count == 0) continue;
      gpu.fetch_add(counts + row + e, count);
      shared.count(e) = 0;
    }
    gpu.sync_block();
  }

  // The block's threads share out the pairs of some tokens.
  template <class Thread, class Visit>
  TY_DEVICE void for_each_id(Thread& gpu, int32_t first, int32_t end, const Visit& visit) const {
    const auto columns = static_cast<uint32_t>(top_k);
    const uint32_t pairs = static_cast<uint32_t>(end - first) * columns;
    for (auto pair = static_cast<uint32_t>(gpu.thread()); pair < pairs; pair += kThreads) {
      const int64_t at = (first + int64_t{pair / columns}) * num_columns + pair % columns;
      const int64_t id =
          ids_are_int64 ? static_cast<const int64_t*>(ids)[at] : static_cast<const int32_t*>(ids)[at];
      if (id >= 0 && id < num_experts) visit(static_cast<int32_t>(id));
    }
  }
};

}  // namespace tokenyard::training
