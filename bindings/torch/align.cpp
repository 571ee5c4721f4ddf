#include "align.hpp"

#include "align_call.hpp"

namespace tokenyard::torch_binding {

std::tuple<Tensor, Tensor, Tensor> align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
                                         const std::optional<Tensor>& expert_map,
                                         std::optional<int64_t> num_local_experts, int64_t first_id) {
  const Place place(topk_ids);
  Align call(place, topk_ids, num_experts, block_size, expert_map, num_local_experts, first_id);
  call.set_capacity();
  std::tuple order{call.sorted_pair_ids(), call.block_expert(), call.num_padded()};
  call.run();
  return order;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> align_with_details(
    const Tensor& topk_ids, int64_t num_experts, int64_t block_size, const std::optional<Tensor>& expert_map,
    std::optional<int64_t> num_local_experts, int64_t first_id) {
  const Place place(topk_ids);
  Align call(place, topk_ids, num_experts, block_size, expert_map, num_local_experts, first_id);
  call.set_capacity();
  std::tuple order{call.sorted_pair_ids(), call.block_expert(), call.num_padded(), call.counts(),
                   call.offsets(),         call.inverse(),      call.block_rows(), call.num_dropped()};
  call.run();
  return order;
}

void align_out(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
               const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
               int64_t first_id, const Tensor& sorted_pair_ids, const Tensor& block_expert,
               const Tensor& num_padded) {
  const Place place(topk_ids);
  Align call(place, topk_ids, num_experts, block_size, expert_map, num_local_experts, first_id);
  call.write_to({.sorted_pair_ids = view(sorted_pair_ids),
                 .block_expert = view(block_expert),
                 .num_padded = view(num_padded)});
  call.run();
}

}  // namespace tokenyard::torch_binding
