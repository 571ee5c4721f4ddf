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
#include "gate/lanes_row.hpp"
#include "gate/outputs.hpp"
#include "gate/router.hpp"
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
    gate::RowShared<Thread, Shape, kTokensOfBlock> row;
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
  align::Outputs<true> order;

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
    if constexpr (kCluster > 1) gpu.template await_inbox<kCluster>(shared.inbox);
    gpu.sync_block();
    sort(gpu, shared);
  }

 private:
  static constexpr int kGateThreads = kTokensOfBlock * Shape::kLanes;
  static constexpr int kFillThreads = kThreads - kGateThreads;
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
    gate::LanesRow<Thread, Shape, kTokensOfBlock> row(
        gpu, router, rule, shared.row, router.row(token < router.num_tokens ? token : router.num_tokens - 1),
        slot);
    return row.choose();
  }

  // A token's ids to all blocks, and to memory.
  template <class Thread, class S>
  TY_DEVICE void deliver(Thread& gpu, S& shared, int slot, int64_t token, const gate::Chosen& chosen) const {
    const bool exists = token < router.num_tokens;
    const bool is_real = exists && out.is_real(token);
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
    if (is_chosen) out.put(token, chosen.rank, chosen.expert, chosen.weight);
    if (exists && !is_real && lane < router.top_k) out.put_padding(token, lane);
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
    constexpr int kPairs = (kTokens * kMaxK + kThreads - 1) / kThreads;
    int32_t expert[kPairs];
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int token = (gpu.thread() + i * kThreads) / kMaxK;
      const int k = gpu.thread() % kMaxK;
      expert[i] = token < router.num_tokens && k < router.top_k ? id_of(shared, token, k) : kNobody;
      if (expert[i] == kNobody) continue;
      gpu.or_bits(shared.tokens(cell(expert[i], token / 32)), 1u << token % 32);
      gpu.or_bits(shared.active(expert[i] / 32), 1u << expert[i] % 32);
    }
    gpu.sync_block();

    // Where no expert can have more pairs than a block, those with pairs have one each.
    const bool is_short = router.num_tokens <= order.block.divisor();
    align::Run run{gpu.thread(), 0, 0, 0};
    const bool has_run = run.expert < router.num_experts;
    if (has_run) {
#pragma unroll
      for (int word = 0; word < kWords; ++word)
        run.pairs += gpu.popcount(shared.tokens(cell(run.expert, word)));
      run.blocks = order.block.ceil(run.pairs);
    }
    int32_t used;
    if (is_short) {
      run.first_block = active_below(gpu, shared, port::min_of(run.expert, kExperts));
      used = active_below(gpu, shared, kExperts);
    } else {
      const port::ScanResult scan =
          port::block_exclusive_sum<kThreads, kExperts>(gpu, run.blocks, shared.partial);
      run.first_block = scan.before;
      used = scan.total;
      if (has_run) shared.first_block(run.expert) = run.first_block;
      gpu.sync_block();
    }
    const int rank = gpu.template cluster_rank<kCluster>();
    if (has_run && run.expert % kCluster == rank) {
      if (out.counts != nullptr) out.counts[run.expert] = run.pairs;
      order.write_expert(run);
      order.write_blocks(run, 0, 1);
    }
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int token = (gpu.thread() + i * kThreads) / kMaxK;
      const int k = gpu.thread() % kMaxK;
      if (token >= router.num_tokens || k >= router.top_k) continue;
      const int32_t pair = token * router.top_k + k;
      if (expert[i] == kNobody) {
        if (rank == 0) order.write_dropped_pair(pair);
        continue;
      }
      const int32_t first = is_short ? active_below(gpu, shared, expert[i])
                                     : static_cast<int32_t>(shared.first_block(expert[i]));
      const int32_t at = first * order.block.divisor() + tokens_below(gpu, shared, expert[i], token);
      if (order.template stretch_of<Thread>(at) % kCluster == rank) order.write_pair(at, pair);
    }
    order.write_unused_blocks(used, rank * kThreads + gpu.thread(), kCluster * kThreads);
    if (rank == 0 && gpu.thread() == 0) {
      order.write_totals(used);
      if (order.wants_dropped()) order.write_dropped(num_real() * router.top_k);
    }
  }

  TY_DEVICE int32_t num_real() const {
    if (out.num_real_tokens == nullptr) return router.num_tokens;
    const int32_t real = *out.num_real_tokens;
    return real < 0 ? 0 : port::min_of(real, router.num_tokens);
  }

  template <class Thread, class S>
  static TY_DEVICE int32_t active_below(Thread& gpu, S& shared, int32_t expert) {
    int32_t below = 0;
#pragma unroll
    for (int first = 0; first < kExperts / 32; first += 4) {
      const port::Pack<uint32_t> words = gpu.load_pack(shared.active, first);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int32_t bits = expert - (first + i) * 32;
        const uint32_t mask = bits >= 32 ? ~0u : bits <= 0 ? 0 : (1u << bits) - 1;
        below += gpu.popcount(words.item[i] & mask);
      }
    }
    return below;
  }

  template <class Thread, class S>
  static TY_DEVICE int32_t tokens_below(Thread& gpu, S& shared, int32_t expert, int token) {
    int32_t below = 0;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const int bits = token - word * 32;
      const uint32_t mask = bits >= 32 ? ~0u : bits <= 0 ? 0 : (1u << bits) - 1;
      below += gpu.popcount(shared.tokens(cell(expert, word)) & mask);
    }
    return below;
  }
};

}  // namespace tokenyard::route
