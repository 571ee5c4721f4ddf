#include "align.hpp"

#include <string>

namespace tokenyard::binding {
namespace {

constexpr const char* kAlign = "align";

}  // namespace

ty_align_args arguments(const AlignInputs& inputs) {
  const int32_t dtype = inputs.topk_ids.dtype;
  if (dtype != TY_INT32 && dtype != TY_INT64) {
    refuse(kAlign, "topk_ids", std::string("of type ") + inputs.topk_ids.dtype_name, "int32 or int64",
           "convert it");
  }
  if (inputs.expert_map.has_value() != inputs.num_local_experts.has_value()) {
    refuse(kAlign, inputs.expert_map ? "num_local_experts" : "expert_map", "None",
           "both an expert_map and num_local_experts, or neither",
           "pass the map and the number of experts of this rank");
  }
  const Rows rows = rows_of(kAlign, "topk_ids", inputs.topk_ids);
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.ids_dtype = dtype;
  args.topk_ids = rows.data;
  args.num_tokens = rows.count;
  args.row_stride = rows.stride;
  args.top_k = rows.columns;
  args.num_experts = to_int32(kAlign, "num_experts", inputs.num_experts);
  args.block_size = to_int32(kAlign, "block_size", inputs.block_size);
  args.first_id = inputs.first_id;
  args.num_local_experts = to_int32(kAlign, "num_local_experts", inputs.num_local_experts.value_or(0));
  args.expert_map = static_cast<const int32_t*>(elements_of(
      kAlign, "expert_map", inputs.expert_map, inputs.topk_ids.device, TY_INT32, inputs.num_experts));
  return args;
}

void write_to(ty_align_args& args, const AlignOutputs& outputs, ty_device device) {
  const auto ints = [&](const char* argument, const std::optional<View>& view, int64_t number) {
    return static_cast<int32_t*>(elements_of(kAlign, argument, view, device, TY_INT32, number));
  };
  const int64_t slots = elements(outputs.sorted_pair_ids);
  const int64_t block = args.block_size < 1 ? 1 : args.block_size;  // which align refuses
  const int64_t blocks = (slots + block - 1) / block;
  args.capacity = slots;
  args.sorted_pair_ids = ints("sorted_pair_ids", outputs.sorted_pair_ids, slots);
  args.block_expert = ints("block_expert", outputs.block_expert, blocks);
  args.num_padded = ints("num_padded", outputs.num_padded, 1);
  args.counts = ints("counts", outputs.counts, experts(args));
  args.offsets = ints("offsets", outputs.offsets, int64_t{experts(args)} + 1);
  args.inverse = ints("inverse", outputs.inverse, args.num_tokens * args.top_k);
  args.block_rows = ints("block_rows", outputs.block_rows, blocks);
  args.num_dropped = ints("num_dropped", outputs.num_dropped, 1);
}

int32_t experts(const ty_align_args& args) {
  return args.expert_map == nullptr ? args.num_experts : args.num_local_experts;
}

}  // namespace tokenyard::binding
