// gate with a token in the registers of a few lanes: see lanes_row.hpp and packed_row.hpp.
#pragma once

#include <cstdint>

#include "gate/chosen.hpp"
#include "gate/outputs.hpp"
#include "gate/router.hpp"
#include "gate/weights.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// RowKind: LanesRow or PackedRow.
template <template <class, class, int> class RowKind, class Shape, int kThreads, int kResident>
struct LanesGate {
  static constexpr int threads = kThreads;
  static constexpr int resident = kResident;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kTokens = kThreads / Shape::kLanes;  // of a block

  template <class Thread>
  using Row = RowKind<Thread, Shape, kTokens>;
  template <class Thread>
  using Shared = typename Row<Thread>::Shared;

  Router<typename Shape::Logit> router;
  WeightRule rule;
  Outputs out;

  explicit LanesGate(const Problem& problem) : router(problem), rule(problem), out(problem) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.let_next_begin();
    constexpr int kTokensOfWarp = Thread::warp_size / Shape::kLanes;
    const auto slot = static_cast<unsigned>(gpu.thread()) / Shape::kLanes;
    const unsigned token = static_cast<unsigned>(gpu.block()) * kTokens + slot;
    const auto num_tokens = static_cast<unsigned>(router.num_tokens);
    if (token / kTokensOfWarp * kTokensOfWarp >= num_tokens) return;  // the whole warp
    const bool exists = token < num_tokens;
    Row<Thread> row(gpu, router, rule, gpu.template shared<Shared<Thread>>(),
                    router.row(exists ? token : num_tokens - 1), gpu.thread_at_hand());
    const Chosen chosen = row.choose();
    if (router.is_plain) [[likely]] {
      if (exists && chosen.rank < router.top_k) {
        router.put_plain(token, chosen.rank, chosen.expert, chosen.weight);
      }
    } else {
      write(gpu, row, exists ? int64_t{token} : -1, chosen);
    }
  }

 private:
  // With all that a call may ask for. A token below 0 does not exist.
  template <class Thread>
  TY_DEVICE void write(Thread& gpu, Row<Thread>& row, int64_t token, const Chosen& chosen) const {
    const bool is_chosen = chosen.rank < out.top_k;
    const bool is_real = token >= 0 && out.is_real(token);
    if (is_real && is_chosen) out.put_expert(gpu, token, chosen.rank, chosen.expert, chosen.weight);
    const int lane = gpu.lane() % Shape::kLanes;
    if (out.columns > out.top_k) {
      gpu.sync_warp();
      const float shared = rule.shared_weight(row.sum_by_rank(chosen.rank, chosen.weight));
      for (int i = out.top_k + lane; i < out.columns && is_real; i += Shape::kLanes) {
        out.put(token, i, out.first_shared + i - out.top_k, shared);
      }
    }
    if (token < 0 || is_real) return;
    for (int column = lane; column < out.columns; column += Shape::kLanes) out.put_padding(token, column);
  }
};

}  // namespace tokenyard::gate
