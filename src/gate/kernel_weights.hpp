// The last step of every kernel: from the chosen experts of a token, which its lanes hold, to its outputs.
#pragma once

#include <cstdint>

#include "gate/outputs.hpp"
#include "gate/quick_score.hpp"
#include "gate/weights.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// The experts of one token: lane l of its kLanes holds those of ranks l, l + kLanes, ...
template <int kSlots>
struct ChosenOfLane {
  int32_t expert[kSlots];
  float logit[kSlots];
};

// Every lane of the warp must call it. `token` is below 0 where a lane's token does not exist; `highest` and
// `total` are the row's, needed where the rule says so.
template <class Logit, int kLanes, int kSlots, class Thread>
TY_DEVICE void write_weights(Thread& gpu, const WeightRule& rule, const Outputs& out, int64_t token,
                             const ChosenOfLane<kSlots>& chosen, float highest, float total) {
  const QuickScores<Logit, Thread> scores(gpu);
  const int lane = gpu.lane() % kLanes;
  const auto has = [&](int slot) { return lane + slot * kLanes < out.top_k; };
  if (rule.softmax_of_chosen()) {
    highest = -kInfinity;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      if (has(slot) && chosen.logit[slot] > highest) highest = chosen.logit[slot];
    }
    highest = port::lanes_max<kLanes>(gpu, highest, out.top_k);
  }
  float weight[kSlots];
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) {
    weight[slot] = has(slot) ? rule.numerator(scores, chosen.logit[slot], highest) : 0;
  }
  const float divisor = rule.divisor(port::lanes_tree_sum<kLanes>(gpu, weight, out.top_k), total);
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) {
    weight[slot] = rule.weight(scores, weight[slot], divisor);
    if (has(slot) && token >= 0) {
      out.put_expert(gpu, token, lane + slot * kLanes, chosen.expert[slot], weight[slot]);
    }
  }
  if (out.columns == out.top_k) return;
  const float shared = rule.shared_weight(port::lanes_tree_sum<kLanes>(gpu, weight));
  for (int i = out.top_k + lane; i < out.columns && token >= 0; i += kLanes) {
    out.put(token, i, out.first_shared + i - out.top_k, shared);
  }
}

}  // namespace tokenyard::gate
