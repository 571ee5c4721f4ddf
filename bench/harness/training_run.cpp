#include "harness/training_run.hpp"

#include <cstddef>
#include <utility>

#include "harness/as_status.hpp"
#include "harness/synchronize.hpp"

namespace tokenyard::harness {
namespace {

Status put_logits(CallMemory& memory, const GateProblem& forward, const void** address) {
  return memory.input("logits", size_of(forward.shape.dtype), logits_bytes(forward.shape, forward.logits),
                      address);
}

Status allocate_gradient(CallMemory& memory, const GateProblem& forward, void** address) {
  return memory.output("logits_grad", size_of(forward.shape.dtype), forward.logits.size(), address);
}

// Of int32 or int64.
Status put_integers(CallMemory& memory, const char* name, const std::vector<int64_t>& values, bool int64,
                    const void** address) {
  if (int64) return memory.input(name, sizeof(int64_t), bytes_of(values), address);
  return memory.input(name, sizeof(int32_t), bytes_of(std::vector<int32_t>(values.begin(), values.end())),
                      address);
}

ty_dtype integer_dtype(bool int64) { return int64 ? TY_INT64 : TY_INT32; }

Status read_gradient(const CallMemory& memory, const void* address, int32_t dtype,
                     std::vector<float>& gradient) {
  Bytes contents;
  TY_RETURN_IF_ERROR(memory.read(address, contents));
  gradient = floats_of(contents, static_cast<ty_dtype>(dtype));
  return {};
}

template <class Run, class Problem, class Outputs>
Status run_once(ty_device device, const Problem& problem, const TrainingOptions& options, Outputs& outputs) {
  std::optional<Run> run;
  TY_RETURN_IF_ERROR(Run::create(device, problem, options, run));
  TY_RETURN_IF_ERROR(run->launch(options.stream));
  TY_RETURN_IF_ERROR(synchronize(device, options.stream));
  return run->collect(outputs);
}

}  // namespace

Status BackwardRun::create(ty_device device, const BackwardProblem& problem, const TrainingOptions& options,
                           std::optional<BackwardRun>& run) {
  const GateShape& shape = problem.forward.shape;
  BackwardRun made;
  made.device_ = device;
  ty_gate_backward_args& args = made.args_;
  args.logits_dtype = shape.dtype;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.top_k = shape.top_k;
  args.score = shape.score;
  args.weight_mode = shape.weights;
  args.epsilon = shape.epsilon;
  args.scale = shape.scale;
  args.num_shared_experts = shape.shared;
  args.ids_dtype = integer_dtype(shape.int64_ids);
  TY_RETURN_IF_ERROR(made.memory_.open(device, options.misalignment, options.stream));
  TY_RETURN_IF_ERROR(put_logits(made.memory_, problem.forward, &args.logits));
  TY_RETURN_IF_ERROR(put_integers(made.memory_, "ids", problem.ids, shape.int64_ids, &args.ids));
  TY_RETURN_IF_ERROR(made.memory_.input("weights_grad", problem.weights_grad, &args.weights_grad));
  TY_RETURN_IF_ERROR(allocate_gradient(made.memory_, problem.forward, &args.logits_grad));
  run = std::move(made);
  return {};
}

Status BackwardRun::launch(Stream stream, const BackwardRun& inputs) {
  ty_gate_backward_args args = inputs.args_;
  args.logits_grad = args_.logits_grad;
  return as_status(ty_gate_backward(device_, &args, stream));
}

Status BackwardRun::collect(std::vector<float>& gradient) {
  TY_RETURN_IF_ERROR(memory_.check());
  return read_gradient(memory_, args_.logits_grad, args_.logits_dtype, gradient);
}

Status LossRun::create(ty_device device, const LossProblem& problem, const TrainingOptions& options,
                       std::optional<LossRun>& run) {
  const GateProblem& forward = problem.chosen.forward;
  const GateShape& shape = forward.shape;
  LossRun made;
  made.device_ = device;
  ty_router_loss_args& args = made.args_;
  args.logits_dtype = shape.dtype;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.score = shape.score;
  args.balance_coefficient = problem.balance_coefficient;
  args.z_coefficient = problem.z_coefficient;
  CallMemory& memory = made.memory_;
  TY_RETURN_IF_ERROR(memory.open(device, options.misalignment, options.stream));
  TY_RETURN_IF_ERROR(put_logits(memory, forward, &args.logits));
  if (!problem.sequence_offsets.empty()) {
    TY_RETURN_IF_ERROR(memory.input("sequence_offsets", problem.sequence_offsets, &args.sequence_offsets));
    args.num_sequences = problem.num_sequences();
  }
  if (problem.given_counts.empty()) {
    args.num_columns = forward.columns();
    args.top_k = shape.top_k;
    args.ids_dtype = integer_dtype(shape.int64_ids);
    TY_RETURN_IF_ERROR(put_integers(memory, "ids", problem.chosen.ids, shape.int64_ids, &args.ids));
    const auto experts = static_cast<size_t>(shape.experts);
    TY_RETURN_IF_ERROR(
        memory.output("counts", static_cast<size_t>(problem.num_sequences()) * experts, &args.counts));
  } else {
    const int32_t* counts = nullptr;
    TY_RETURN_IF_ERROR(memory.input("counts", problem.given_counts, &counts));
    args.counts = const_cast<int32_t*>(counts);  // the call reads them; a change would show
  }
  const int64_t runs = (shape.tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN;
  TY_RETURN_IF_ERROR(memory.output("scratch", static_cast<size_t>(2 * runs), &args.scratch));
  TY_RETURN_IF_ERROR(memory.output("losses", 2, &args.losses));
  if (options.with_gradient) TY_RETURN_IF_ERROR(allocate_gradient(memory, forward, &args.logits_grad));
  run = std::move(made);
  return {};
}

Status LossRun::launch(Stream stream, const LossRun& inputs) {
  ty_router_loss_args args = inputs.args_;
  if (args.ids != nullptr) args.counts = args_.counts;
  args.losses = args_.losses;
  args.scratch = args_.scratch;
  args.logits_grad = args_.logits_grad;
  return as_status(ty_router_loss(device_, &args, stream));
}

Status LossRun::collect(LossOutputs& outputs) {
  TY_RETURN_IF_ERROR(memory_.check());
  TY_RETURN_IF_ERROR(memory_.read(args_.losses, outputs.losses));
  TY_RETURN_IF_ERROR(memory_.read(args_.counts, outputs.counts));
  return read_gradient(memory_, args_.logits_grad, args_.logits_dtype, outputs.gradient);
}

Status BalanceRun::create(ty_device device, const BalanceProblem& problem, const TrainingOptions& options,
                          std::optional<BalanceRun>& run) {
  BalanceRun made;
  made.device_ = device;
  ty_balance_args& args = made.args_;
  args.counts_dtype = integer_dtype(problem.int64_counts);
  args.num_experts = static_cast<int32_t>(problem.counts.size());
  args.rate = problem.rate;
  TY_RETURN_IF_ERROR(made.memory_.open(device, options.misalignment, options.stream));
  TY_RETURN_IF_ERROR(
      put_integers(made.memory_, "counts", problem.counts, problem.int64_counts, &args.counts));
  if (!problem.bias.empty()) {
    void* bias = nullptr;
    TY_RETURN_IF_ERROR(made.memory_.changed_in_place("bias", sizeof(float), bytes_of(problem.bias), &bias));
    args.bias = static_cast<float*>(bias);
  }
  TY_RETURN_IF_ERROR(made.memory_.output("statistics", 4, &args.statistics));
  run = std::move(made);
  return {};
}

Status BalanceRun::launch(Stream stream, const BalanceRun& inputs) {
  ty_balance_args args = args_;
  args.counts = inputs.args_.counts;
  return as_status(ty_balance(device_, &args, stream));
}

Status BalanceRun::collect(BalanceOutputs& outputs) {
  TY_RETURN_IF_ERROR(memory_.check());
  TY_RETURN_IF_ERROR(memory_.read(args_.bias, outputs.bias));
  return memory_.read(args_.statistics, outputs.statistics);
}

Status run_backward(ty_device device, const BackwardProblem& problem, const TrainingOptions& options,
                    std::vector<float>& gradient) {
  return run_once<BackwardRun>(device, problem, options, gradient);
}

Status run_loss(ty_device device, const LossProblem& problem, const TrainingOptions& options,
                LossOutputs& outputs) {
  return run_once<LossRun>(device, problem, options, outputs);
}

Status run_balance(ty_device device, const BalanceProblem& problem, const TrainingOptions& options,
                   BalanceOutputs& outputs) {
  return run_once<BalanceRun>(device, problem, options, outputs);
}

}  // namespace tokenyard::harness
