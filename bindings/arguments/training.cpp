#include "training.hpp"

#include "gate.hpp"

namespace tokenyard::binding {
namespace {

constexpr const char* kBackward = "gate_backward";
constexpr const char* kLoss = "router_loss";
constexpr const char* kBalance = "balance";

int32_t integer_type_of(const char* operation, const char* argument, const View& view) {
  if (view.dtype == TY_INT32 || view.dtype == TY_INT64) return view.dtype;
  refuse(operation, argument, std::string("of type ") + view.dtype_name, "int32 or int64", "convert it");
}

// The logits, whose shape is the shape of all.
template <class Args>
void set_logits(const char* operation, const View& logits, Args& args) {
  args.logits_dtype = float_type_of(operation, "logits", logits);
  const Rows rows = rows_of(operation, "logits", logits);
  args.logits = rows.data;
  args.num_tokens = rows.count;
  args.num_experts = rows.columns;
  args.row_stride = rows.stride;
}

// The columns of [num_tokens, columns] ids, the first top_k of which were chosen.
int32_t columns_of(const char* operation, const View& ids, int64_t num_tokens, std::optional<int64_t> top_k) {
  if (ids.sizes.size() != 2 || ids.sizes[0] != num_tokens) {
    refuse(operation, "ids", "of shape " + shape(ids), "[" + std::to_string(num_tokens) + ", columns]",
           "pass those of the logits' tokens");
  }
  const int64_t columns = ids.sizes[1];
  if (top_k > columns) {
    refuse(operation, "top_k", std::to_string(*top_k), "at most " + std::to_string(columns),
           "no more were chosen than ids has columns");
  }
  return to_int32(operation, "ids", columns);
}

}  // namespace

ty_gate_backward_args arguments(const BackwardInputs& inputs) {
  const ty_device device = inputs.logits.device;
  ty_gate_backward_args args = TY_GATE_BACKWARD_ARGS_INIT;
  set_logits(kBackward, inputs.logits, args);
  args.ids_dtype = integer_type_of(kBackward, "ids", inputs.ids);
  const int64_t columns = columns_of(kBackward, inputs.ids, args.num_tokens, inputs.top_k);
  args.top_k = to_int32(kBackward, "top_k", inputs.top_k);
  args.num_shared_experts = to_int32(kBackward, "top_k", columns - inputs.top_k);
  args.score = score_of(kBackward, inputs.score);
  args.weight_mode = weight_mode_of(kBackward, inputs.weight_mode);
  args.epsilon = static_cast<float>(inputs.epsilon);
  args.scale = static_cast<float>(inputs.scale);
  const int64_t pairs = args.num_tokens * columns;
  args.ids = elements_of(kBackward, "ids", inputs.ids, device, args.ids_dtype, pairs);
  args.weights_grad = static_cast<const float*>(
      elements_of(kBackward, "weights_grad", inputs.weights_grad, device, TY_FLOAT32, pairs));
  return args;
}

void write_to(ty_gate_backward_args& args, const View& logits_grad, ty_device device) {
  args.logits_grad = elements_of(kBackward, "logits_grad", logits_grad, device, args.logits_dtype,
                                 args.num_tokens * args.num_experts);
}

ty_router_loss_args arguments(const LossInputs& inputs) {
  const ty_device device = inputs.logits.device;
  ty_router_loss_args args = TY_ROUTER_LOSS_ARGS_INIT;
  set_logits(kLoss, inputs.logits, args);
  args.score = score_of(kLoss, inputs.score);
  args.balance_coefficient = static_cast<float>(inputs.balance_coefficient);
  args.z_coefficient = static_cast<float>(inputs.z_coefficient);
  if (inputs.sequence_offsets) {
    const int64_t bounds = elements(*inputs.sequence_offsets);
    if (bounds < 2) {
      refuse(kLoss, "sequence_offsets", "of shape " + shape(*inputs.sequence_offsets),
             "at least two elements", "begin with 0 and end with the number of tokens");
    }
    args.sequence_offsets = static_cast<const int32_t*>(
        elements_of(kLoss, "sequence_offsets", inputs.sequence_offsets, device, TY_INT32, bounds));
    args.num_sequences = to_int32(kLoss, "sequence_offsets", bounds - 1);
  }
  if (inputs.ids) {
    args.ids_dtype = integer_type_of(kLoss, "ids", *inputs.ids);
    args.num_columns = columns_of(kLoss, *inputs.ids, args.num_tokens, inputs.top_k);
    args.top_k = to_int32(kLoss, "top_k", inputs.top_k.value_or(args.num_columns));
    args.ids =
        elements_of(kLoss, "ids", inputs.ids, device, args.ids_dtype, args.num_tokens * args.num_columns);
  }
  return args;
}

void write_to(ty_router_loss_args& args, const LossOutputs& outputs, ty_device device) {
  const auto floats = [&](const char* argument, const View& view, int64_t number) {
    return static_cast<float*>(elements_of(kLoss, argument, view, device, TY_FLOAT32, number));
  };
  if (!outputs.counts && args.balance_coefficient != 0) {
    refuse(kLoss, "counts", "None", "ids or counts where there is a balance_coefficient",
           "pass those that gate gave");
  }
  args.counts = static_cast<int32_t*>(elements_of(kLoss, "counts", outputs.counts, device, TY_INT32,
                                                  int64_t{args.num_sequences} * args.num_experts));
  args.losses = floats("losses", outputs.losses, 2);
  args.scratch = floats("scratch", outputs.scratch, scratch_size(args));
  args.logits_grad = elements_of(kLoss, "logits_grad", outputs.logits_grad, device, args.logits_dtype,
                                 args.num_tokens * args.num_experts);
}

int64_t scratch_size(const ty_router_loss_args& args) {
  return 2 * ((args.num_tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN);
}

ty_balance_args arguments(const View& counts, double rate, const std::optional<View>& bias,
                          const std::optional<View>& statistics) {
  const int64_t experts = elements(counts);
  ty_balance_args args = TY_BALANCE_ARGS_INIT;
  args.counts_dtype = integer_type_of(kBalance, "counts", counts);
  args.counts = elements_of(kBalance, "counts", counts, counts.device, args.counts_dtype, experts);
  args.num_experts = to_int32(kBalance, "counts", experts);
  args.rate = static_cast<float>(rate);
  const auto floats = [&](const char* argument, const std::optional<View>& view, int64_t number) {
    return static_cast<float*>(elements_of(kBalance, argument, view, counts.device, TY_FLOAT32, number));
  };
  args.bias = floats("bias", bias, experts);
  args.statistics = floats("statistics", statistics, 4);
  return args;
}

}  // namespace tokenyard::binding
