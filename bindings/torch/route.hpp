// torch.ops.tokenyard.route*: gate's options, then align's. The functions of python/tokenyard/ops.py document
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "align_call.hpp"
#include "arguments/gate.hpp"
#include "arguments/route.hpp"
#include "gate_call.hpp"

namespace tokenyard::torch_binding {

// `Option` are the types of gate's options in the schema. Each operator makes a call of gate and one of align
// of the ids that it will write, and runs both as one.
template <class... Option>
struct RouteOperators {
  static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> route(const Tensor& logits, int64_t top_k,
                                                                  int64_t block_size, Option... options,
                                                                  const std::optional<Tensor>& expert_map,
                                                                  std::optional<int64_t> num_local_experts,
                                                                  std::optional<ScalarType> ids_dtype) {
    Call call(logits);
    std::tuple routed = binding::part_of_route([&] {
      Gate gate(call.place, logits, {top_k, as_argument(options)...});
      const Tensor ids = gate.ids(ids_dtype);
      const Tensor weights = gate.weights();
      gate.write_to({.ids = view(ids), .weights = view(weights)});
      Align order(call.place, ids, binding::id_bound(gate.args()), block_size, expert_map, num_local_experts);
      order.set_capacity();
      std::tuple outputs{ids, weights, order.sorted_pair_ids(), order.block_expert(), order.num_padded()};
      call.take(gate, order);
      return outputs;
    });
    call.run();
    return routed;
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                    Tensor>
  route_with_details(const Tensor& logits, int64_t top_k, int64_t block_size, Option... options,
                     const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
                     std::optional<ScalarType> ids_dtype) {
    Call call(logits);
    std::tuple routed = binding::part_of_route([&] {
      Gate gate(call.place, logits, {top_k, as_argument(options)...});
      const Tensor ids = gate.ids(ids_dtype);
      const Tensor weights = gate.weights();
      const Tensor counts = gate.counts();
      const Tensor physical_counts = gate.physical_counts();
      gate.write_to({.ids = view(ids),
                     .weights = view(weights),
                     .counts = view(counts),
                     .physical_counts = view(physical_counts)});
      Align order(call.place, ids, binding::id_bound(gate.args()), block_size, expert_map, num_local_experts);
      order.set_capacity();
      std::tuple outputs{ids,
                         weights,
                         counts,
                         physical_counts,
                         order.sorted_pair_ids(),
                         order.block_expert(),
                         order.num_padded(),
                         order.counts(),
                         order.offsets(),
                         order.inverse(),
                         order.block_rows(),
                         order.num_dropped()};
      call.take(gate, order);
      return outputs;
    });
    call.run();
    return routed;
  }

  static void route_out(const Tensor& logits, int64_t top_k, int64_t block_size, Option... options,
                        const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
                        const Tensor& ids, const Tensor& weights, const Tensor& sorted_pair_ids,
                        const Tensor& block_expert, const Tensor& num_padded) {
    Call call(logits);
    binding::part_of_route([&] {
      Gate gate(call.place, logits, {top_k, as_argument(options)...});
      gate.write_to({.ids = view(ids), .weights = view(weights)});
      Align order(call.place, ids, binding::id_bound(gate.args()), block_size, expert_map, num_local_experts);
      order.write_to({.sorted_pair_ids = view(sorted_pair_ids),
                      .block_expert = view(block_expert),
                      .num_padded = view(num_padded)});
      call.take(gate, order);
    });
    call.run();
  }

 private:
  struct Call {
    explicit Call(const Tensor& logits) : place(logits) {}

    void take(const Gate& of_gate, const Align& of_align) {
      gate = of_gate.args();
      align = of_align.args();
    }
    void run() const {
      binding::run_once(ty_route_once_size, ty_route_once, place.device(), binding::arguments(gate, align),
                        place.stream(), memory_of(place));
    }

    Place place;
    ty_gate_args gate;
    ty_align_args align;
  };
};

using Routes = binding::WithGateOptions<RouteOperators, std::optional<Tensor>, std::string>;

}  // namespace tokenyard::torch_binding
