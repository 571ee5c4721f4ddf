#include "gate/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "runtime/check.hpp"
#include "runtime/text.hpp"

namespace tokenyard::gate {
namespace {

constexpr int64_t kMaxPosition = std::numeric_limits<int32_t>::max();

// The struct as it was in its first version: nothing shorter is accepted.
constexpr size_t kFirstSize = sizeof(ty_gate_args);

constexpr Check kCheck("gate");

size_t size_of(int32_t dtype) { return dtype == TY_BFLOAT16 || dtype == TY_FLOAT16 ? 2 : 4; }

Status check_choices(const ty_gate_args& args) {
  if (args.logits_dtype != TY_FLOAT32 && args.logits_dtype != TY_BFLOAT16 &&
      args.logits_dtype != TY_FLOAT16) {
    return kCheck.invalid("logits_dtype", text(args.logits_dtype), "TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16",
                          "convert the logits");
  }
  if (args.score < TY_GATE_SOFTMAX || args.score > TY_GATE_SQRT_SOFTPLUS) {
    return kCheck.invalid("score", text(args.score), "a ty_gate_score", "see the formulas in the header");
  }
  if (args.weight_mode < TY_GATE_RAW || args.weight_mode > TY_GATE_SOFTMAX_OF_CHOSEN) {
    return kCheck.invalid("weight_mode", text(args.weight_mode), "a ty_gate_weights",
                          "see the formulas in the header");
  }
  if (args.bias != nullptr && args.bias_dtype != TY_FLOAT32 && args.bias_dtype != args.logits_dtype) {
    return kCheck.invalid("bias_dtype", text(args.bias_dtype), "TY_FLOAT32 or the type of the logits",
                          "convert the bias to float32");
  }
  if (args.group_score < TY_GATE_GROUP_MAX || args.group_score > TY_GATE_GROUP_TOP2) {
    return kCheck.invalid("group_score", text(args.group_score), "a ty_gate_group_score",
                          "use TY_GATE_GROUP_MAX or TY_GATE_GROUP_TOP2");
  }
  if (args.shared_mode < TY_GATE_SHARED_FIXED || args.shared_mode > TY_GATE_SHARED_OF_SUM) {
    return kCheck.invalid("shared_mode", text(args.shared_mode), "a ty_gate_shared",
                          "use TY_GATE_SHARED_FIXED or TY_GATE_SHARED_OF_SUM");
  }
  if (args.ids_dtype != TY_INT32 && args.ids_dtype != TY_INT64) {
    return kCheck.invalid("ids_dtype", text(args.ids_dtype), "TY_INT32 or TY_INT64",
                          "ids are written as one of them");
  }
  if (args.reserved != 0) {
    return kCheck.invalid("reserved", text(args.reserved), "0",
                          "initialise the struct with TY_GATE_ARGS_INIT");
  }
  return {};
}

Status check_groups(const ty_gate_args& args) {
  if (args.num_groups == 0) return {};
  TY_RETURN_IF_ERROR(kCheck.range("num_groups", args.num_groups, 1, std::min(args.num_experts, kMaxGroups),
                                  "pass the groups that the experts fall into, or 0"));
  if (args.num_experts % args.num_groups != 0) {
    return kCheck.invalid("num_groups", text(args.num_groups),
                          text("a divisor of num_experts, which is ", args.num_experts),
                          "groups are of equal size");
  }
  TY_RETURN_IF_ERROR(
      kCheck.range("kept_groups", args.kept_groups, 1, args.num_groups, "pass how many groups are kept"));
  const int32_t size = args.num_experts / args.num_groups;
  if (args.group_score == TY_GATE_GROUP_TOP2 && size < 2) {
    return kCheck.invalid("group_score", "TY_GATE_GROUP_TOP2 with one expert a group",
                          "at least two experts a group", "use TY_GATE_GROUP_MAX or fewer groups");
  }
  return kCheck.range("top_k", args.top_k, 1, int64_t{size} * args.kept_groups,
                      "the kept groups must hold the chosen experts; keep more of them");
}

Status check_weights(const ty_gate_args& args) {
  if (!(args.epsilon >= 0) || std::isinf(args.epsilon)) {
    return kCheck.invalid("epsilon", text(args.epsilon), "a finite number of at least 0",
                          "0 adds nothing to the sum");
  }
  if (!std::isfinite(args.scale) || args.scale == 0) {
    return kCheck.invalid("scale", text(args.scale), "a finite number other than 0",
                          "1 leaves the weights as they are");
  }
  if (!std::isfinite(args.shared_weight)) {
    return kCheck.invalid("shared_weight", text(args.shared_weight), "a finite number", "1 is usual");
  }
  return {};
}

Status check_replicas(const ty_gate_args& args, bool required) {
  if (args.replicas == nullptr) {
    if (args.physical_counts == nullptr) return {};
    return kCheck.invalid("physical_counts", "given without replicas", "NULL",
                          "without replicas, counts holds the same");
  }
  TY_RETURN_IF_ERROR(kCheck.range("max_replicas", args.max_replicas, 1, kMaxPhysicalExperts,
                                  "pass the columns of the table of replicas"));
  TY_RETURN_IF_ERROR(kCheck.range("num_physical_experts", args.num_physical_experts, 1, kMaxPhysicalExperts,
                                  "with replicas, pass the number of physical experts"));
  TY_RETURN_IF_ERROR(kCheck.pointer("replicas", args.replicas, sizeof(int32_t), false));
  return kCheck.pointer("num_replicas", args.num_replicas, sizeof(int32_t), required);
}

Status check_pointers(const ty_gate_args& args, bool required) {
  const bool has_tokens = required && args.num_tokens > 0;
  TY_RETURN_IF_ERROR(kCheck.pointer("logits", args.logits, size_of(args.logits_dtype), has_tokens));
  TY_RETURN_IF_ERROR(kCheck.pointer("bias", args.bias, size_of(args.bias_dtype), false));
  TY_RETURN_IF_ERROR(check_replicas(args, required));
  TY_RETURN_IF_ERROR(kCheck.pointer("num_real_tokens", args.num_real_tokens, sizeof(int32_t), false));
  const size_t id_bytes = args.ids_dtype == TY_INT64 ? sizeof(int64_t) : sizeof(int32_t);
  TY_RETURN_IF_ERROR(kCheck.pointer("ids", args.ids, id_bytes, has_tokens));
  TY_RETURN_IF_ERROR(kCheck.pointer("weights", args.weights, sizeof(float), has_tokens));
  TY_RETURN_IF_ERROR(kCheck.pointer("counts", args.counts, sizeof(int32_t), false));
  return kCheck.pointer("physical_counts", args.physical_counts, sizeof(int32_t), false);
}

}  // namespace

Status check(const ty_gate_args* given, Pointers pointers, Problem& problem) {
  ty_gate_args args = TY_GATE_ARGS_INIT;
  TY_RETURN_IF_ERROR(kCheck.read(given, kFirstSize, "ty_gate_args", "TY_GATE_ARGS_INIT", args));
  TY_RETURN_IF_ERROR(check_choices(args));
  TY_RETURN_IF_ERROR(
      kCheck.range("num_experts", args.num_experts, 1, kMaxExperts, "pass the columns of the logits"));
  TY_RETURN_IF_ERROR(kCheck.range("top_k", args.top_k, 1, std::min(args.num_experts, kMaxTopK),
                                  "pass the experts that each token chooses"));
  TY_RETURN_IF_ERROR(kCheck.range("num_shared_experts", args.num_shared_experts, 0, kMaxShared,
                                  "pass the shared experts to append, or 0"));
  const int32_t columns = args.top_k + args.num_shared_experts;
  TY_RETURN_IF_ERROR(kCheck.range("num_tokens", args.num_tokens, 0, kMaxPosition / columns,
                                  "pair indices are int32; split the batch"));
  const int64_t stride = args.row_stride == 0 ? args.num_experts : args.row_stride;
  // Rows x stride must not overflow.
  const int64_t widest = (int64_t{1} << 60) / std::max<int64_t>(args.num_tokens, int64_t{1} << 20);
  TY_RETURN_IF_ERROR(kCheck.range("row_stride", stride, args.num_experts, widest,
                                  "pass the elements from one row to the next, or 0 for contiguous rows"));
  TY_RETURN_IF_ERROR(check_groups(args));
  TY_RETURN_IF_ERROR(check_weights(args));
  if (args.lanes < 0 || args.lanes > 64 || (args.lanes & (args.lanes - 1)) != 0) {
    return kCheck.invalid("lanes", text(args.lanes), "0, or a power of two up to 64", "use 0");
  }
  TY_RETURN_IF_ERROR(check_pointers(args, pointers == Pointers::kRequired));

  const bool grouped = args.num_groups > 0 && args.kept_groups < args.num_groups;
  problem = Problem{
      .logits = args.logits,
      .logits_dtype = static_cast<ty_dtype>(args.logits_dtype),
      .num_tokens = args.num_tokens,
      .row_stride = stride,
      .num_experts = args.num_experts,
      .top_k = args.top_k,
      .score = static_cast<ty_gate_score>(args.score),
      .bias = args.bias,
      .bias_dtype = static_cast<ty_dtype>(args.bias_dtype),
      .num_groups = grouped ? args.num_groups : 1,
      .kept_groups = grouped ? args.kept_groups : 1,
      .group_score = static_cast<ty_gate_group_score>(args.group_score),
      .weight_mode = static_cast<ty_gate_weights>(args.weight_mode),
      .epsilon = args.epsilon,
      .scale = args.scale,
      .num_shared_experts = args.num_shared_experts,
      .shared_mode = static_cast<ty_gate_shared>(args.shared_mode),
      .shared_weight = args.shared_weight,
      .replicas = args.replicas,
      .num_replicas = args.num_replicas,
      .max_replicas = args.max_replicas,
      .num_physical_experts = args.replicas == nullptr ? args.num_experts : args.num_physical_experts,
      .num_real_tokens = args.num_real_tokens,
      .ids_are_int64 = args.ids_dtype == TY_INT64,
      .ids = args.ids,
      .weights = args.weights,
      .counts = args.counts,
      .physical_counts = args.physical_counts,
      .lanes = args.lanes,
  };
  return {};
}

}  // namespace tokenyard::gate
