// torch.ops.tokenyard.align*: from tensors to ty_align_args. The functions of python/tokenyard/ops.py
// document them.
#include <tuple>

#include "operators.hpp"
#include "tensors.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::torch_binding {
namespace {

constexpr const char* kAlign = "align";

// What every form of the operator is given.
struct Given {
  const Tensor& topk_ids;
  int64_t num_experts;
  int64_t block_size;
  const std::optional<Tensor>& expert_map;
  std::optional<int64_t> num_local_experts;
};

ty_align_args arguments(const Given& given, const Place& place) {
  const ScalarType dtype = given.topk_ids.scalar_type();
  if (dtype != ScalarType::Int && dtype != ScalarType::Long) {
    refuse(kAlign, "topk_ids", "of type " + name(dtype), "Int or Long", "convert it with .to(torch.int32)");
  }
  if (given.expert_map.has_value() != given.num_local_experts.has_value()) {
    refuse(kAlign, given.expert_map ? "num_local_experts" : "expert_map", "None",
           "both an expert_map and num_local_experts, or neither",
           "pass the map and the number of experts of this rank");
  }
  const Rows rows = rows_of(kAlign, "topk_ids", given.topk_ids);
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.ids_dtype = dtype == ScalarType::Long ? TY_INT64 : TY_INT32;
  args.topk_ids = rows.data;
  args.num_tokens = rows.count;
  args.row_stride = rows.stride;
  args.top_k = rows.columns;
  args.num_experts = to_int32(kAlign, "num_experts", given.num_experts);
  args.block_size = to_int32(kAlign, "block_size", given.block_size);
  args.num_local_experts = to_int32(kAlign, "num_local_experts", given.num_local_experts.value_or(0));
  args.expert_map = static_cast<const int32_t*>(
      elements_of(kAlign, "expert_map", given.expert_map, place, ScalarType::Int, given.num_experts));
  return args;
}

int32_t experts(const ty_align_args& args) {
  return args.expert_map == nullptr ? args.num_experts : args.num_local_experts;
}

// Memory that the call needs belongs to it alone: PyTorch's allocator follows the order of the stream, and in
// a capture it takes the graph's own pool. So streams and graphs share no state, whoever runs beside whom.
void run(const ty_align_args& args, const Place& place) {
  size_t bytes = 0;
  check(ty_align_workspace_size(place.device(), &args, &bytes));
  if (bytes == 0) return check(ty_align_once(place.device(), &args, nullptr, 0, place.stream()));
  const Tensor memory = place.empty({static_cast<int64_t>(bytes)}, ScalarType::Byte);
  check(ty_align_once(place.device(), &args, memory.mutable_data_ptr(), bytes, place.stream()));
}

int32_t* new_ints(std::optional<Tensor>& tensor, const Place& place, std::initializer_list<int64_t> sizes) {
  tensor = place.empty(sizes, ScalarType::Int);
  return static_cast<int32_t*>(tensor->mutable_data_ptr());
}

struct Order {
  std::optional<Tensor> sorted_pair_ids, block_expert, num_padded;

  Order(ty_align_args& args, const Place& place) {
    const int64_t pairs = args.num_tokens * args.top_k;
    args.capacity = ty_align_capacity(pairs, experts(args), args.block_size);
    // With arguments that have no capacity nothing is allocated: the library says what is wrong with them.
    if (args.capacity < 0) check(ty_align_once(place.device(), &args, nullptr, 0, place.stream()));
    args.sorted_pair_ids = new_ints(sorted_pair_ids, place, {args.capacity});
    args.block_expert = new_ints(block_expert, place, {args.capacity / args.block_size});
    args.num_padded = new_ints(num_padded, place, {1});
  }
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
                                         const std::optional<Tensor>& expert_map,
                                         std::optional<int64_t> num_local_experts) {
  const Place place(kAlign, topk_ids);
  ty_align_args args = arguments({topk_ids, num_experts, block_size, expert_map, num_local_experts}, place);
  const Order order(args, place);
  run(args, place);
  return {*order.sorted_pair_ids, *order.block_expert, *order.num_padded};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> align_with_details(
    const Tensor& topk_ids, int64_t num_experts, int64_t block_size, const std::optional<Tensor>& expert_map,
    std::optional<int64_t> num_local_experts) {
  const Place place(kAlign, topk_ids);
  ty_align_args args = arguments({topk_ids, num_experts, block_size, expert_map, num_local_experts}, place);
  const Order order(args, place);
  std::optional<Tensor> counts, offsets, inverse, block_rows, num_dropped;
  args.counts = new_ints(counts, place, {experts(args)});
  args.offsets = new_ints(offsets, place, {experts(args) + 1});
  args.inverse = new_ints(inverse, place, {args.num_tokens, args.top_k});
  args.block_rows = new_ints(block_rows, place, {args.capacity / args.block_size});
  args.num_dropped = new_ints(num_dropped, place, {1});
  run(args, place);
  return {*order.sorted_pair_ids,
          *order.block_expert,
          *order.num_padded,
          *counts,
          *offsets,
          *inverse,
          *block_rows,
          *num_dropped};
}

void align_out(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
               const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
               const Tensor& sorted_pair_ids, const Tensor& block_expert, const Tensor& num_padded) {
  const Place place(kAlign, topk_ids);
  ty_align_args args = arguments({topk_ids, num_experts, block_size, expert_map, num_local_experts}, place);
  const auto ints = [&](const char* argument, const Tensor& tensor, int64_t elements) {
    return static_cast<int32_t*>(elements_of(kAlign, argument, tensor, place, ScalarType::Int, elements));
  };
  args.capacity = sorted_pair_ids.numel();
  args.sorted_pair_ids = ints("sorted_pair_ids", sorted_pair_ids, -1);
  const int64_t blocks = block_size < 1 ? -1 : (args.capacity + block_size - 1) / block_size;
  args.block_expert = ints("block_expert", block_expert, blocks);
  args.num_padded = ints("num_padded", num_padded, 1);
  run(args, place);
}

}  // namespace tokenyard::torch_binding
