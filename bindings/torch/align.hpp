// torch.ops.tokenyard.align*. The functions of python/tokenyard/ops.py document them.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "tensors.hpp"

namespace tokenyard::torch_binding {

std::tuple<Tensor, Tensor, Tensor> align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
                                         const std::optional<Tensor>& expert_map,
                                         std::optional<int64_t> num_local_experts, int64_t first_id);

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> align_with_details(
    const Tensor& topk_ids, int64_t num_experts, int64_t block_size, const std::optional<Tensor>& expert_map,
    std::optional<int64_t> num_local_experts, int64_t first_id);

void align_out(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
               const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
               int64_t first_id, const Tensor& sorted_pair_ids, const Tensor& block_expert,
               const Tensor& num_padded);

}  // namespace tokenyard::torch_binding
