// The operators. Their schemas are in library.cpp, their meaning in python/tokenyard/ops.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "gate.hpp"
#include "tensors.hpp"

namespace tokenyard::torch_binding {

std::tuple<Tensor, Tensor, Tensor> align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
                                         const std::optional<Tensor>& expert_map,
                                         std::optional<int64_t> num_local_experts);

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> align_with_details(
    const Tensor& topk_ids, int64_t num_experts, int64_t block_size, const std::optional<Tensor>& expert_map,
    std::optional<int64_t> num_local_experts);

void align_out(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
               const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
               const Tensor& sorted_pair_ids, const Tensor& block_expert, const Tensor& num_padded);

// gate's, whose many options are listed once: `Option` are the types of GateOptions' fields, in their order.
template <class... Option>
struct GateOperators {
  static std::tuple<Tensor, Tensor> gate(const Tensor& logits, Option... options,
                                         std::optional<ScalarType> ids_dtype) {
    Gate call(logits, GateOptions{options...});
    const Chosen chosen = call.chosen(ids_dtype);
    call.write(chosen);
    call.run();
    return {chosen.ids, chosen.weights};
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor> with_counts(const Tensor& logits, Option... options,
                                                                std::optional<ScalarType> ids_dtype) {
    Gate call(logits, GateOptions{options...});
    const Chosen chosen = call.chosen(ids_dtype);
    const Counts counts = call.counts();
    call.write(chosen);
    call.write(counts);
    call.run();
    return {chosen.ids, chosen.weights, counts.of_experts, counts.of_physical_experts};
  }

  static void out(const Tensor& logits, Option... options, const Tensor& ids, const Tensor& weights) {
    Gate call(logits, GateOptions{options...});
    call.write(Chosen{ids, weights});
    call.run();
  }
};

using Tensors = std::optional<Tensor>;
using Gates = GateOperators<int64_t, Tensors, std::string, std::string, int64_t, int64_t, std::string, double,
                            double, int64_t, std::string, double, Tensors, Tensors, int64_t, Tensors>;

}  // namespace tokenyard::torch_binding
