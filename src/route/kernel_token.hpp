// route of one token, in one block without a barrier: its experts are all different, so each has one pair and
// one block of the order, in which all slots but the first are padding whatever is chosen.
//
//   first warp   logits ─▶ gate ─▶ how many of the chosen have lower ids ─▶ the first slot of that block
//   the others   the other slots
#pragma once

#include <cstdint>

#include "align/kernel_outputs.hpp"
#include "gate/chosen.hpp"
#include "gate/outputs.hpp"
#include "gate/router.hpp"
#include "gate/row_of.hpp"
#include "gate/weights.hpp"
#include "port/port.hpp"
#include "route/contract.hpp"

namespace tokenyard::route {

template <class Shape, int kThreads>
struct TokenRoute {
  static constexpr int threads = kThreads;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int kMaxK = 8;
  static constexpr int32_t kNobody = 0xffff;

  template <class Thread>
  struct Shared {
    typename gate::RowOf<Thread, Shape, 1>::Shared row;
    typename Thread::template array<uint16_t, kMaxK> ids;
  };

  gate::Router<typename Shape::Logit> router;
  gate::Outputs out;
  gate::WeightRule rule;
  align::Outputs<false> order;

  explicit TokenRoute(const Problem& problem)
      : router(problem.gate), out(problem.gate), rule(problem.gate), order(problem.align) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    static_assert(Thread::warp_size == Shape::kLanes && kThreads > Thread::warp_size);
    const bool is_real = out.is_plain || out.is_real(0);
    if (gpu.warp() == 0) {
      place(gpu, is_real);
    } else {
      constexpr int kFillers = kThreads / Thread::warp_size - 1;
#pragma unroll 1
      for (int32_t block = gpu.warp() - 1; block < router.top_k; block += kFillers) {
        fill(gpu, block, is_real);
      }
    }
    // Room that the caller gave beyond a block for each pair.
    if (router.top_k < order.num_blocks()) order.template write_unused<kThreads>(gpu, router.top_k);
  }

 private:
  template <class Thread>
  TY_DEVICE void place(Thread& gpu, bool is_real) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    if (gpu.lane() < kMaxK) shared.ids(gpu.lane()) = static_cast<uint16_t>(kNobody);
    gate::RowOf<Thread, Shape, 1> row(gpu, router, rule, shared.row, router.row(0), gpu.lane());
    const gate::Chosen chosen = row.choose();
    const bool is_chosen = is_real && chosen.rank < router.top_k;
    if (is_chosen) shared.ids(chosen.rank) = static_cast<uint16_t>(chosen.expert);
    gpu.sync_warp();
    if (is_chosen) {
      const port::Pack<uint16_t> ids = gpu.load_pack(shared.ids, 0);
      int32_t block = 0;
#pragma unroll
      for (const uint16_t id : ids.item) block += id < chosen.expert ? 1 : 0;
      order.write_pair(block * order.block.divisor(), chosen.rank);
      order.write_block(block, {chosen.expert, 1, block, 1});
    }
    out.put_choice(0, is_real, gpu.lane(), chosen.rank, chosen.expert, chosen.weight);
    if (gpu.lane() == 0) order.write_totals(is_real ? router.top_k : 0);
  }

  // What does not depend on what is chosen.
  template <class Thread>
  TY_DEVICE void fill(Thread& gpu, int32_t block, bool is_real) const {
    const align::Run run{-1, is_real ? 1 : 0, block, 1};
    order.write_pads(gpu, run);
    if (!is_real && gpu.lane() == 0) order.write_block(block, run);
  }
};

}  // namespace tokenyard::route
