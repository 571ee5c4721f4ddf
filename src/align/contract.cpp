#include "align/contract.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "runtime/check.hpp"
#include "runtime/text.hpp"

namespace tokenyard::align {
namespace {

constexpr int64_t kMaxPosition = std::numeric_limits<int32_t>::max();

// The struct as it was in its first version: nothing shorter is accepted.
constexpr size_t kFirstSize = offsetof(ty_align_args, first_id);

constexpr Check kCheck("align");

bool sizes_in_range(int64_t num_pairs, int32_t experts, int32_t block_size) {
  return num_pairs >= 0 && num_pairs <= kMaxPosition && experts >= 1 && experts <= kMaxExperts &&
         block_size >= 1;
}

int64_t if_it_fits(int64_t slots) { return slots <= kMaxPosition ? slots : -1; }

}  // namespace

int64_t capacity(int64_t num_pairs, int32_t experts, int32_t block_size) {
  if (!sizes_in_range(num_pairs, experts, block_size)) return -1;
  const int64_t block = block_size;
  const int64_t each_pair_alone = num_pairs * block;
  const int64_t each_expert_short_of_one = (num_pairs + experts * (block - 1) + block - 1) / block * block;
  return if_it_fits(std::min(each_pair_alone, each_expert_short_of_one));
}

int64_t min_capacity(int64_t num_pairs, int32_t experts, int32_t block_size) {
  if (!sizes_in_range(num_pairs, experts, block_size)) return -1;
  const int64_t block = block_size;
  const int64_t used = std::min<int64_t>(num_pairs, experts);  // one pair each opens a block each
  return if_it_fits((used + (num_pairs - used) / block) * block);
}

Status read(const ty_align_args* given, ty_align_args& args) {
  args = TY_ALIGN_ARGS_INIT;
  return kCheck.read(given, kFirstSize, "ty_align_args", "TY_ALIGN_ARGS_INIT", args);
}

Status check(const ty_align_args* given, Pointers pointers, Problem& problem) {
  ty_align_args args;
  TY_RETURN_IF_ERROR(read(given, args));
  return check(args, pointers, problem);
}

Status check(const ty_align_args& args, Pointers pointers, Problem& problem) {
  const bool required = pointers == Pointers::kRequired;

  if (args.ids_dtype != TY_INT32 && args.ids_dtype != TY_INT64) {
    return kCheck.invalid("ids_dtype", text(args.ids_dtype), "TY_INT32 or TY_INT64", "convert the ids");
  }
  TY_RETURN_IF_ERROR(kCheck.range("top_k", args.top_k, 1, kMaxPosition, "pass the columns of topk_ids"));
  TY_RETURN_IF_ERROR(kCheck.range("num_tokens", args.num_tokens, 0, kMaxPosition / args.top_k,
                                  "pair indices are int32; split the batch"));
  TY_RETURN_IF_ERROR(
      kCheck.range("num_experts", args.num_experts, 1, kMaxExperts, "pass the global number of experts"));
  TY_RETURN_IF_ERROR(kCheck.range("block_size", args.block_size, 1, kMaxPosition,
                                  "pass the rows of the matrix product's tile"));
  const int64_t stride = args.row_stride == 0 ? args.top_k : args.row_stride;
  // Rows x stride must not overflow.
  const int64_t widest = (int64_t{1} << 60) / std::max<int64_t>(args.num_tokens, int64_t{1} << 20);
  TY_RETURN_IF_ERROR(kCheck.range("row_stride", stride, args.top_k, widest,
                                  "pass the elements from one row to the next, or 0 for contiguous rows"));
  int32_t experts = args.num_experts;
  if (args.expert_map != nullptr) {
    TY_RETURN_IF_ERROR(kCheck.range("num_local_experts", args.num_local_experts, 1, kMaxExperts,
                                    "with an expert_map, pass the experts of this rank"));
    experts = args.num_local_experts;
  }
  if (args.expert_map != nullptr && args.first_id != 0) {
    return kCheck.invalid("first_id", text(args.first_id), "0 with an expert_map",
                          "let the map begin at the first id");
  }
  TY_RETURN_IF_ERROR(kCheck.range("first_id", args.first_id, std::numeric_limits<int32_t>::min(),
                                  kMaxPosition - args.num_experts + 1, "ids of experts are int32"));
  if (args.path < TY_ALIGN_AUTO || args.path > TY_ALIGN_SPLIT) {
    return kCheck.invalid("path", text(args.path), "a ty_align_path", "use TY_ALIGN_AUTO");
  }
  TY_RETURN_IF_ERROR(kCheck.range("linked", args.linked, 0, 1, "pass 1 where the launch may begin early"));
  const int64_t pairs = args.num_tokens * args.top_k;
  const int64_t needed = min_capacity(pairs, experts, args.block_size);
  if (needed < 0) {
    return {
        TY_INVALID_ARGUMENT,
        text("align: ", pairs, " pairs of ", experts, " experts in blocks of ", args.block_size,
             " may need more than ", kMaxPosition,
             " slots, expected positions that fit in int32: use a smaller block_size or split the batch")};
  }
  TY_RETURN_IF_ERROR(
      kCheck.range("capacity", args.capacity, needed, kMaxPosition, "allocate ty_align_capacity() slots"));

  const size_t id_bytes = args.ids_dtype == TY_INT64 ? sizeof(int64_t) : sizeof(int32_t);
  TY_RETURN_IF_ERROR(kCheck.pointer("topk_ids", args.topk_ids, id_bytes, required && pairs > 0));
  TY_RETURN_IF_ERROR(kCheck.pointer("expert_map", args.expert_map, sizeof(int32_t), false));
  const bool has_slots = args.capacity > 0;
  TY_RETURN_IF_ERROR(
      kCheck.pointer("sorted_pair_ids", args.sorted_pair_ids, sizeof(int32_t), required && has_slots));
  TY_RETURN_IF_ERROR(
      kCheck.pointer("block_expert", args.block_expert, sizeof(int32_t), required && has_slots));
  TY_RETURN_IF_ERROR(kCheck.pointer("num_padded", args.num_padded, sizeof(int32_t), required));
  TY_RETURN_IF_ERROR(kCheck.pointer("counts", args.counts, sizeof(int32_t), false));
  TY_RETURN_IF_ERROR(kCheck.pointer("offsets", args.offsets, sizeof(int32_t), false));
  TY_RETURN_IF_ERROR(kCheck.pointer("inverse", args.inverse, sizeof(int32_t), false));
  TY_RETURN_IF_ERROR(kCheck.pointer("block_rows", args.block_rows, sizeof(int32_t), false));
  TY_RETURN_IF_ERROR(kCheck.pointer("num_dropped", args.num_dropped, sizeof(int32_t), false));

  problem = Problem{
      .topk_ids = args.topk_ids,
      .ids_are_int64 = args.ids_dtype == TY_INT64,
      .num_tokens = args.num_tokens,
      .row_stride = stride,
      .top_k = args.top_k,
      .first_id = static_cast<int32_t>(args.first_id),
      .num_experts = args.num_experts,
      .num_local_experts = experts,
      .block_size = args.block_size,
      .expert_map = args.expert_map,
      .capacity = args.capacity,
      .sorted_pair_ids = args.sorted_pair_ids,
      .block_expert = args.block_expert,
      .num_padded = args.num_padded,
      .counts = args.counts,
      .offsets = args.offsets,
      .inverse = args.inverse,
      .block_rows = args.block_rows,
      .num_dropped = args.num_dropped,
      .path = static_cast<ty_align_path>(args.path),
      .linked = args.linked != 0,
  };
  return {};
}

}  // namespace tokenyard::align
