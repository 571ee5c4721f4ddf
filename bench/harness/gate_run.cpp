#include "harness/gate_run.hpp"

#include <cstddef>
#include <utility>

#include "harness/as_status.hpp"
#include "harness/synchronize.hpp"

namespace tokenyard::harness {

ty_gate_args gate_args(const GateShape& shape) {
  alignas(16) static const int32_t some_memory = 0;  // says that there is a bias or a table; nobody reads it
  ty_gate_args args = TY_GATE_ARGS_INIT;
  args.logits_dtype = shape.dtype;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.top_k = shape.top_k;
  args.score = shape.score;
  args.weight_mode = shape.weights;
  if (shape.bias) args.bias = &some_memory;
  args.bias_dtype = shape.bias_as_logits ? shape.dtype : TY_FLOAT32;
  args.num_groups = shape.groups;
  args.kept_groups = shape.kept_groups;
  args.group_score = shape.group_score;
  args.epsilon = shape.epsilon;
  args.scale = shape.scale;
  args.num_shared_experts = shape.shared;
  args.shared_mode = shape.shared_of_sum ? TY_GATE_SHARED_OF_SUM : TY_GATE_SHARED_FIXED;
  args.shared_weight = shape.shared_weight;
  if (shape.replicas > 0) {
    args.replicas = args.num_replicas = &some_memory;
    args.max_replicas = shape.replicas;
    args.num_physical_experts = shape.experts * shape.replicas;
  }
  args.ids_dtype = shape.int64_ids ? TY_INT64 : TY_INT32;
  return args;
}

Status GateRun::set_inputs(const GateProblem& problem) {
  TY_RETURN_IF_ERROR(
      memory_.input("logits", size_of(shape_.dtype), logits_bytes(shape_, problem.logits), &args_.logits));
  if (shape_.bias) {
    const ty_dtype dtype = shape_.bias_as_logits ? shape_.dtype : TY_FLOAT32;
    TY_RETURN_IF_ERROR(memory_.input("bias", size_of(dtype), bytes_of(problem.bias, dtype), &args_.bias));
  }
  if (shape_.replicas > 0) {
    TY_RETURN_IF_ERROR(memory_.input("replicas", problem.replicas, &args_.replicas));
    TY_RETURN_IF_ERROR(memory_.input("num_replicas", problem.num_replicas, &args_.num_replicas));
  }
  if (shape_.padding < 0) return {};
  const std::vector<int32_t> real{static_cast<int32_t>(problem.num_real_tokens())};
  return memory_.input("num_real_tokens", real, &args_.num_real_tokens);
}

Status GateRun::allocate_outputs(const GateProblem& problem, bool optional_outputs) {
  const auto elements = static_cast<size_t>(shape_.tokens * problem.columns());
  TY_RETURN_IF_ERROR(
      memory_.output("ids", shape_.int64_ids ? sizeof(int64_t) : sizeof(int32_t), elements, &args_.ids));
  TY_RETURN_IF_ERROR(memory_.output("weights", elements, &args_.weights));
  if (!optional_outputs) return {};
  TY_RETURN_IF_ERROR(memory_.output("counts", static_cast<size_t>(shape_.experts), &args_.counts));
  if (shape_.replicas == 0) return {};
  return memory_.output("physical_counts", static_cast<size_t>(problem.num_physical_experts()),
                        &args_.physical_counts);
}

Status GateRun::create(ty_device device, const GateProblem& problem, const GateOptions& options,
                       std::optional<GateRun>& run) {
  GateRun made;
  made.device_ = device;
  made.shape_ = problem.shape;
  made.args_ = gate_args(problem.shape);
  made.args_.lanes = options.lanes;
  TY_RETURN_IF_ERROR(made.memory_.open(device, options.misalignment, options.stream));
  TY_RETURN_IF_ERROR(made.set_inputs(problem));
  TY_RETURN_IF_ERROR(made.allocate_outputs(problem, options.optional_outputs));
  run = std::move(made);
  return {};
}

Status GateRun::set_logits(const std::vector<float>& logits) {
  return memory_.replace(args_.logits, logits_bytes(shape_, logits));
}

Status GateRun::launch(Stream stream, const GateRun& inputs) {
  ty_gate_args args = args_;
  args.logits = inputs.args_.logits;
  return as_status(ty_gate(device_, &args, stream));
}

Status GateRun::collect(GateOutputs& outputs) {
  outputs = GateOutputs();
  TY_RETURN_IF_ERROR(memory_.check());
  if (shape_.int64_ids) {
    TY_RETURN_IF_ERROR(memory_.read(static_cast<const int64_t*>(args_.ids), outputs.ids));
  } else {
    std::vector<int32_t> narrow;
    TY_RETURN_IF_ERROR(memory_.read(static_cast<const int32_t*>(args_.ids), narrow));
    outputs.ids.assign(narrow.begin(), narrow.end());
  }
  TY_RETURN_IF_ERROR(memory_.read(args_.weights, outputs.weights));
  TY_RETURN_IF_ERROR(memory_.read(args_.counts, outputs.counts));
  return memory_.read(args_.physical_counts, outputs.physical_counts);
}

Status run_gate(ty_device device, const GateProblem& problem, const GateOptions& options,
                GateOutputs& outputs) {
  std::optional<GateRun> run;
  TY_RETURN_IF_ERROR(GateRun::create(device, problem, options, run));
  TY_RETURN_IF_ERROR(run->launch(options.stream));
  TY_RETURN_IF_ERROR(synchronize(device, options.stream));
  return run->collect(outputs);
}

}  // namespace tokenyard::harness
