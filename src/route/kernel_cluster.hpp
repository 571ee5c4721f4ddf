// route of a small batch in one launch of one cluster, or of one block.
//
//   logits ─▶ gate, in a token's lanes ─▶ ids and weights written; the ids sent to all blocks of the cluster
//   meanwhile other warps fill the slots with padding
//                     │
//   every block has all ids: a mask of tokens for each expert ─▶ where each expert's blocks begin
//                     │
//   a pair's rank: the tokens before its own in its expert's mask ─▶ its slot
//
// A token's ids are all different, so a bit for each token is enough. Slots belong to blocks in turn, a
// stretch each: who filled one with padding also writes the pairs in it, so that a barrier of the block
// orders the two.
#pragma once

#include <bit>
#include <cstdint>

#include "align/kernel_outputs.hpp"
#include "gate/chosen.hpp"
#include "gate/outputs.hpp"
#include "gate/router.hpp"
#include "gate/row_of.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"
#include "route/contract.hpp"

namespace tokenyard::route {

// kTokensOfBlock: whose lanes are the first threads; the others fill.
template <class Shape, int kThreads, int kCluster, int kTokensOfBlock>
struct ClusterRoute {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = false;
  static constexpr int kTokens = kCluster * kTokensOfBlock;  // at most
  static constexpr int kExperts = Shape::kLanes * Shape::kItems;
  static constexpr int kMaxK = 8;  // ids of a token: 16 bytes, which are sent at once
  static constexpr int kWords = (kTokens + 31) / 32;
  static constexpr int32_t kNobody = 0xffff;
  static_assert(kThreads >= kExperts && (kWords & (kWords - 1)) == 0);

  template <class Thread>
  struct Shared {
    typename gate::RowOf<Thread, Shape, kTokensOfBlock>::Shared row;
    typename Thread::inbox inbox;
    typename Thread::template array<uint16_t, kTokensOfBlock * kMaxK> own_ids;
    typename Thread::template array<uint32_t, kCluster == 1 ? 4 : kTokens * kMaxK / 2> all_ids;
    typename Thread::template array<uint32_t, kExperts * kWords> tokens;  // of each expert, a bit each
    typename Thread::template array<uint32_t, kExperts / 32> active;      // experts with tokens
    typename Thread::template array<int32_t, kExperts> first_block;
    typename Thread::template array<int32_t, kThreads / Thread::warp_size> partial;
  };

  gate::Router<typename Shape::Logit> router;
  gate::Outputs out;
  gate::WeightRule rule;
  align::Outputs<false> order;

  explicit ClusterRoute(const Problem& problem)
      : router(problem.gate), out(problem.gate), rule(problem.gate), order(problem.align) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    if constexpr (kCluster > 1) {
      if (gpu.thread() == 0) {
        gpu.template open_inbox<kCluster>(shared.inbox,
                                          router.num_tokens * static_cast<int>(sizeof(port::Vec4)));
      }
      gpu.template arrive_cluster<kCluster>();
    }
    gate::Chosen chosen{kMaxK, 0, 0};
    const int slot = gpu.thread() / Shape::kLanes;
    const int64_t token = static_cast<int64_t>(slot) * kCluster + gpu.template cluster_rank<kCluster>();
    if (!is_gate_warp(gpu)) {
      gpu.template zero<kExperts * kWords, kFillThreads>(shared.tokens, 0, gpu.thread() - kGateThreads);
      gpu.template zero<kExperts / 32, kFillThreads>(shared.active, 0, gpu.thread() - kGateThreads);
      fill(gpu, gpu.warp() - kGateThreads / Thread::warp_size);
    } else if (warp_has_tokens(gpu)) {
      chosen = choose(gpu, shared, slot, token);
    }
    gpu.template wait_cluster<kCluster>();
    if (is_gate_warp(gpu) && warp_has_tokens(gpu)) deliver(gpu, shared, slot, token, chosen);
    gpu.sync_block();
    if constexpr (kCluster > 1) gpu.template await_inbox<kCluster>(shared.inbox);
    sort(gpu, shared);
  }

 private:
  static constexpr int kGateThreads = kTokensOfBlock * Shape::kLanes;
  static constexpr int kFillThreads = kThreads - kGateThreads;
  static constexpr int kPairs = (kTokens * kMaxK + kThreads - 1) / kThreads;  // of a thread
  static_assert(kFillThreads > 0);

  template <class Thread>
  static TY_DEVICE bool is_gate_warp(Thread& gpu) {
    return gpu.warp() < kGateThreads / Thread::warp_size;
  }
  template <class Thread>
  TY_DEVICE bool warp_has_tokens(Thread& gpu) const {
    const int first_slot = gpu.warp() * (Thread::warp_size / Shape::kLanes);
    return first_slot * kCluster + gpu.template cluster_rank<kCluster>() < router.num_tokens;
  }

  template <class Thread>
  TY_DEVICE void fill(Thread& gpu, int filler) const {
    constexpr int kFillers = kFillThreads / Thread::warp_size;
    order.fill(gpu, filler * kCluster + gpu.template cluster_rank<kCluster>(), kFillers * kCluster);
  }

  template <class Thread, class S>
  TY_DEVICE gate::Chosen choose(Thread& gpu, S& shared, int slot, int64_t token) const {
    const int lane = gpu.lane() % Shape::kLanes;
    if (lane < kMaxK) shared.own_ids(slot * kMaxK + lane) = static_cast<uint16_t>(kNobody);
    const int64_t existing = token < router.num_tokens ? token : router.num_tokens - 1;
    gate::RowOf<Thread, Shape, kTokensOfBlock> row(gpu, router, rule, shared.row,
                                                   router.row(static_cast<uint32_t>(existing)), gpu.thread());
    return row.choose();
  }

  // A token's ids to all blocks, and to memory.
  template <class Thread, class S>
  TY_DEVICE void deliver(Thread& gpu, S& shared, int slot, int64_t token, const gate::Chosen& chosen) const {
    const bool exists = token < router.num_tokens;
    const bool is_real = exists && (out.is_plain || out.is_real(token));
    const bool is_chosen = is_real && chosen.rank < router.top_k;
    if (is_chosen) shared.own_ids(slot * kMaxK + chosen.rank) = static_cast<uint16_t>(chosen.expert);
    const int lane = gpu.lane() % Shape::kLanes;
    if constexpr (kCluster > 1) {
      gpu.sync_warp();
      if (exists && lane < kCluster) {
        const auto ids = std::bit_cast<port::Vec4>(gpu.load_pack(shared.own_ids, slot * kMaxK));
        gpu.template send4<kCluster>(shared.inbox, shared.all_ids, static_cast<int>(token) * kMaxK / 2, ids,
                                     lane);
      }
    }
    if (exists) out.put_choice(token, is_real, lane, chosen.rank, chosen.expert, chosen.weight);
  }

  template <class S>
  static TY_DEVICE int32_t id_of(S& shared, int token, int k) {
    if constexpr (kCluster == 1) {
      return static_cast<uint16_t>(shared.own_ids(token * kMaxK + k));
    } else {
      const uint32_t two = shared.all_ids((token * kMaxK + k) / 2);
      return static_cast<int32_t>(two >> k % 2 * 16 & 0xffff);
    }
  }

  // Neighbouring experts' words in different banks.
  static TY_DEVICE int cell(int32_t expert, int word) {
    return expert * kWords + ((word + expert) & (kWords - 1));
  }

  template <class Thread, class S>
  TY_DEVICE void sort(Thread& gpu, S& shared) const {
    int32_t expert[kPairs];
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int token = token_of(gpu, i);
      const int k = gpu.thread() % kMaxK;
      expert[i] = token < router.num_tokens && k < router.top_k ? id_of(shared, token, k) : kNobody;
      if (expert[i] == kNobody) continue;
      gpu.or_bits(shared.tokens(cell(expert[i], token / 32)), 1u << token % 32);
      gpu.or_bits(shared.active(expert[i] / 32), 1u << expert[i] % 32);
    }
    gpu.sync_block();
    // Where no expert can have more pairs than a block, those that have some have one each.
    if (router.num_tokens <= order.block.divisor()) [[likely]] {
      place_in_single_blocks(gpu, shared, expert);
    } else {
      place_in_runs(gpu, shared, expert);
    }
  }

  template <class Thread, class S>
  TY_DEVICE void place_in_single_blocks(Thread& gpu, S& shared, const int32_t (&expert)[kPairs]) const {
    int32_t active[kExperts / 32];
#pragma unroll
    for (int first = 0; first < kExperts / 32; first += 4) {
      const port::Pack<uint32_t> words = gpu.load_pack(shared.active, first);
#pragma unroll
      for (int i = 0; i < 4; ++i) active[first + i] = gpu.popcount(words.item[i]);
    }
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (expert[i] == kNobody) continue;
      int32_t first = gpu.popcount(shared.active(expert[i] / 32) & ((1u << expert[i] % 32) - 1));
#pragma unroll
      for (int word = 0; word < kExperts / 32 - 1; ++word) {
        if (word < expert[i] / 32) first += active[word];
      }
      const int32_t rank = place(gpu, shared, i, expert[i], first);
      if (rank == 0 && is_owner(gpu, first)) order.write_block(first, {expert[i], 1, first, 1});
    }
    int32_t used = 0;
#pragma unroll
    for (const int32_t count : active) used += count;
    write_rest(gpu, used);
  }

  template <class Thread, class S>
  TY_DEVICE void place_in_runs(Thread& gpu, S& shared, const int32_t (&expert)[kPairs]) const {
    align::Run run{gpu.thread(), 0, 0, 0};
    const bool has_run = run.expert < router.num_experts;
    if (has_run) {
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        run.pairs += gpu.popcount(shared.tokens(cell(run.expert, word)));
      }
      run.blocks = order.block.ceil(run.pairs);
    }
    const port::ScanResult blocks =
        port::block_exclusive_sum<kThreads, kExperts>(gpu, run.blocks, shared.partial);
    run.first_block = blocks.before;
    if (has_run) {
      shared.first_block(run.expert) = run.first_block;
      if (is_owner(gpu, run.expert)) order.write_blocks(run, 0, 1);
    }
    gpu.sync_block();
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      if (expert[i] == kNobody) continue;
      place(gpu, shared, i, expert[i], static_cast<int32_t>(shared.first_block(expert[i])));
    }
    write_rest(gpu, blocks.total);
  }

  // Writes the thread's i-th pair, if the slot is the block's; returns its rank.
  template <class Thread, class S>
  TY_DEVICE int32_t place(Thread& gpu, S& shared, int i, int32_t expert, int32_t first_block) const {
    const int token = token_of(gpu, i);
    int32_t rank = 0;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const uint32_t tokens = shared.tokens(cell(expert, word));
      const uint32_t below = word == token / 32 ? (1u << token % 32) - 1 : word < token / 32 ? ~0u : 0;
      rank += gpu.popcount(tokens & below);
    }
    const int32_t slot = first_block * order.block.divisor() + rank;
    if (is_owner(gpu, order.template stretch_of<Thread>(slot))) {
      order.write_pair(slot, token * router.top_k + gpu.thread() % kMaxK);
    }
    return rank;
  }

  template <class Thread>
  TY_DEVICE void write_rest(Thread& gpu, int32_t used) const {
    const int rank = gpu.template cluster_rank<kCluster>();
    order.write_unused_blocks(used, rank * kThreads + gpu.thread(), kCluster * kThreads);
    if (rank == 0 && gpu.thread() == 0) order.write_totals(used);
  }

  template <class Thread>
  static TY_DEVICE bool is_owner(Thread& gpu, int32_t number) {
    return number % kCluster == gpu.template cluster_rank<kCluster>();
  }

  // Of the thread's i-th pair.
  template <class Thread>
  static TY_DEVICE int token_of(Thread& gpu, int i) {
    return (gpu.thread() + i * kThreads) / kMaxK;
  }
};

}  // namespace tokenyard::route
