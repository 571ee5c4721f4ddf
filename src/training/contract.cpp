#include "training/contract.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "runtime/check.hpp"
#include "runtime/text.hpp"

namespace tokenyard::training {
namespace {

using gate::kMaxExperts;
using gate::kMaxShared;
using gate::kMaxTopK;

constexpr int64_t kMaxPosition = std::numeric_limits<int32_t>::max();

// The structs as they were in their first versions: nothing shorter is accepted.
constexpr size_t kFirstBackward = sizeof(ty_gate_backward_args);
constexpr size_t kFirstLoss = sizeof(ty_router_loss_args);
constexpr size_t kFirstBalance = sizeof(ty_balance_args);

size_t size_of(int32_t dtype) {
  switch (dtype) {
    case TY_BFLOAT16:
    case TY_FLOAT16:
      return 2;
    case TY_INT64:
      return 8;
    default:
      return 4;
  }
}

// The shape of the logits, which backward and losses share; `stride` is what a row_stride of 0 means, too.
template <class Args>
Status check_rows(const Check& check, const Args& args, int64_t max_tokens, int64_t& stride) {
  if (args.logits_dtype != TY_FLOAT32 && args.logits_dtype != TY_BFLOAT16 &&
      args.logits_dtype != TY_FLOAT16) {
    return check.invalid("logits_dtype", text(args.logits_dtype), "TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16",
                         "convert the logits");
  }
  TY_RETURN_IF_ERROR(
      check.range("num_experts", args.num_experts, 1, kMaxExperts, "pass the columns of the logits"));
  TY_RETURN_IF_ERROR(
      check.range("num_tokens", args.num_tokens, 0, max_tokens, "positions are int32; split the batch"));
  stride = args.row_stride == 0 ? args.num_experts : args.row_stride;
  // Rows x stride must not overflow.
  const int64_t widest = (int64_t{1} << 60) / std::max<int64_t>(args.num_tokens, int64_t{1} << 20);
  TY_RETURN_IF_ERROR(check.range("row_stride", stride, args.num_experts, widest,
                                 "pass the elements from one row to the next, or 0 for contiguous rows"));
  if (args.score < TY_GATE_SOFTMAX || args.score > TY_GATE_SQRT_SOFTPLUS) {
    return check.invalid("score", text(args.score), "a ty_gate_score", "see the formulas in the header");
  }
  return {};
}

Status check_ids_dtype(const Check& check, const char* argument, int32_t dtype) {
  if (dtype == TY_INT32 || dtype == TY_INT64) return {};
  return check.invalid(argument, text(dtype), "TY_INT32 or TY_INT64", "convert them to one of these");
}

Status check_weights(const Check& check, const ty_gate_backward_args& args) {
  if (args.weight_mode < TY_GATE_RAW || args.weight_mode > TY_GATE_SOFTMAX_OF_CHOSEN) {
    return check.invalid("weight_mode", text(args.weight_mode), "a ty_gate_weights",
                         "pass what gate was given");
  }
  if (!(args.epsilon >= 0) || std::isinf(args.epsilon)) {
    return check.invalid("epsilon", text(args.epsilon), "a finite number of at least 0",
                         "pass what gate was given");
  }
  if (!std::isfinite(args.scale) || args.scale == 0) {
    return check.invalid("scale", text(args.scale), "a finite number other than 0",
                         "pass what gate was given");
  }
  return {};
}

Status check_coefficient(const Check& check, const char* argument, float coefficient) {
  if (std::isfinite(coefficient)) return {};
  return check.invalid(argument, text(coefficient), "a finite number", "0 leaves this loss out");
}

// Who is counted: sequences, and ids where counts are not given.
Status check_counts(const Check& check, const ty_router_loss_args& args) {
  if (args.sequence_offsets != nullptr) {
    TY_RETURN_IF_ERROR(check.range("num_sequences", args.num_sequences, 1, kMaxPosition / args.num_experts,
                                   "pass the sequences that the offsets bound"));
  }
  if (args.balance_coefficient == 0) return {};
  TY_RETURN_IF_ERROR(check.pointer("counts", args.counts, sizeof(int32_t), true));
  if (args.ids == nullptr) return {};
  TY_RETURN_IF_ERROR(check_ids_dtype(check, "ids_dtype", args.ids_dtype));
  TY_RETURN_IF_ERROR(check.range("top_k", args.top_k, 1, std::min(args.num_experts, kMaxTopK),
                                 "pass the experts that each token chose"));
  TY_RETURN_IF_ERROR(check.range("num_columns", args.num_columns, args.top_k, kMaxTopK + kMaxShared,
                                 "pass the columns of ids, shared experts included"));
  return check.pointer("ids", args.ids, size_of(args.ids_dtype), true);
}

}  // namespace

Status check(const ty_gate_backward_args* given, GateBackwardProblem& problem) {
  constexpr Check check("gate_backward");
  ty_gate_backward_args args = TY_GATE_BACKWARD_ARGS_INIT;
  TY_RETURN_IF_ERROR(
      check.read(given, kFirstBackward, "ty_gate_backward_args", "TY_GATE_BACKWARD_ARGS_INIT", args));
  TY_RETURN_IF_ERROR(check.range("num_shared_experts", args.num_shared_experts, 0, kMaxShared,
                                 "pass the shared columns of ids, or 0"));
  TY_RETURN_IF_ERROR(check.range("top_k", args.top_k, 1, kMaxTopK, "pass the experts that each token chose"));
  int64_t stride = 0;
  TY_RETURN_IF_ERROR(check_rows(check, args, kMaxPosition / (args.top_k + args.num_shared_experts), stride));
  TY_RETURN_IF_ERROR(check.range("top_k", args.top_k, 1, args.num_experts, "no id can stand twice in a row"));
  TY_RETURN_IF_ERROR(check_ids_dtype(check, "ids_dtype", args.ids_dtype));
  TY_RETURN_IF_ERROR(check_weights(check, args));
  const bool required = args.num_tokens > 0;
  TY_RETURN_IF_ERROR(check.pointer("logits", args.logits, size_of(args.logits_dtype), required));
  TY_RETURN_IF_ERROR(check.pointer("ids", args.ids, size_of(args.ids_dtype), required));
  TY_RETURN_IF_ERROR(check.pointer("weights_grad", args.weights_grad, sizeof(float), required));
  TY_RETURN_IF_ERROR(check.pointer("logits_grad", args.logits_grad, size_of(args.logits_dtype), required));

  gate::Problem forward{};
  forward.logits = args.logits;
  forward.logits_dtype = static_cast<ty_dtype>(args.logits_dtype);
  forward.num_tokens = args.num_tokens;
  forward.row_stride = stride;
  forward.num_experts = args.num_experts;
  forward.top_k = args.top_k;
  forward.score = static_cast<ty_gate_score>(args.score);
  forward.weight_mode = static_cast<ty_gate_weights>(args.weight_mode);
  forward.epsilon = args.epsilon;
  forward.scale = args.scale;
  forward.num_shared_experts = args.num_shared_experts;
  forward.ids_are_int64 = args.ids_dtype == TY_INT64;
  forward.ids = const_cast<void*>(args.ids);
  problem = {forward, args.weights_grad, args.logits_grad};
  return {};
}

Status check(const ty_router_loss_args* given, RouterLossProblem& problem) {
  constexpr Check check("router_loss");
  ty_router_loss_args args = TY_ROUTER_LOSS_ARGS_INIT;
  TY_RETURN_IF_ERROR(check.read(given, kFirstLoss, "ty_router_loss_args", "TY_ROUTER_LOSS_ARGS_INIT", args));
  int64_t stride = 0;
  TY_RETURN_IF_ERROR(check_rows(check, args, kMaxPosition, stride));
  TY_RETURN_IF_ERROR(check_coefficient(check, "balance_coefficient", args.balance_coefficient));
  TY_RETURN_IF_ERROR(check_coefficient(check, "z_coefficient", args.z_coefficient));
  TY_RETURN_IF_ERROR(check_counts(check, args));
  const bool required = args.num_tokens > 0;
  TY_RETURN_IF_ERROR(check.pointer("logits", args.logits, size_of(args.logits_dtype), required));
  TY_RETURN_IF_ERROR(check.pointer("sequence_offsets", args.sequence_offsets, sizeof(int32_t), false));
  TY_RETURN_IF_ERROR(check.pointer("losses", args.losses, sizeof(float), true));
  TY_RETURN_IF_ERROR(check.pointer("scratch", args.scratch, sizeof(float), required));
  TY_RETURN_IF_ERROR(check.pointer("logits_grad", args.logits_grad, size_of(args.logits_dtype), false));

  const bool balances = args.balance_coefficient != 0;
  problem = RouterLossProblem{
      .logits = args.logits,
      .logits_dtype = static_cast<ty_dtype>(args.logits_dtype),
      .num_tokens = args.num_tokens,
      .row_stride = stride,
      .num_experts = args.num_experts,
      .score = static_cast<ty_gate_score>(args.score),
      .balance_coefficient = args.balance_coefficient,
      .z_coefficient = args.z_coefficient,
      .sequence_offsets = args.sequence_offsets,
      .num_sequences = args.sequence_offsets == nullptr ? 1 : args.num_sequences,
      .num_columns = args.num_columns,
      .top_k = args.top_k,
      .ids_are_int64 = args.ids_dtype == TY_INT64,
      .ids = balances ? args.ids : nullptr,
      .counts = balances ? args.counts : nullptr,
      .losses = args.losses,
      .scratch = args.scratch,
      .logits_grad = args.logits_grad,
  };
  return {};
}

Status check(const ty_balance_args* given, BalanceProblem& problem) {
  constexpr Check check("balance");
  ty_balance_args args = TY_BALANCE_ARGS_INIT;
  TY_RETURN_IF_ERROR(check.read(given, kFirstBalance, "ty_balance_args", "TY_BALANCE_ARGS_INIT", args));
  TY_RETURN_IF_ERROR(check.range("num_experts", args.num_experts, 1, kMaxExperts, "pass the size of counts"));
  TY_RETURN_IF_ERROR(check_ids_dtype(check, "counts_dtype", args.counts_dtype));
  if (!std::isfinite(args.rate)) {
    return check.invalid("rate", text(args.rate), "a finite number", "0.001 is usual");
  }
  TY_RETURN_IF_ERROR(check.pointer("counts", args.counts, size_of(args.counts_dtype), true));
  TY_RETURN_IF_ERROR(check.pointer("bias", args.bias, sizeof(float), false));
  TY_RETURN_IF_ERROR(check.pointer("statistics", args.statistics, sizeof(float), false));
  problem = {
      args.counts_dtype == TY_INT64, args.counts, args.num_experts, args.rate, args.bias, args.statistics};
  return {};
}

}  // namespace tokenyard::training
