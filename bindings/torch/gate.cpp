// torch.ops.tokenyard.gate*: from tensors to ty_gate_args. The functions of python/tokenyard/ops.py document
// them.
#include "gate.hpp"

#include <initializer_list>

#include "tensors.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::torch_binding {
namespace {

constexpr const char* kGate = "gate";

// A word of the operator for a constant of the C ABI.
struct Word {
  const char* word;
  int32_t value;
};

int32_t value_of(const char* argument, const std::string& given, std::initializer_list<Word> words) {
  std::string known;
  for (const Word& word : words) {
    if (given == word.word) return word.value;
    known += (known.empty() ? "\"" : ", \"") + std::string(word.word) + "\"";
  }
  refuse(kGate, argument, "\"" + given + "\"", known, "spell it as one of these");
}

int32_t float_type(const char* argument, const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return TY_FLOAT32;
    case ScalarType::BFloat16:
      return TY_BFLOAT16;
    case ScalarType::Half:
      return TY_FLOAT16;
    default:
      refuse(kGate, argument, "of type " + name(tensor.scalar_type()), "Float, BFloat16 or Half",
             "convert it with .to()");
  }
}

void set_scores(ty_gate_args& args, const GateOptions& options, const Place& place) {
  args.score = value_of(
      "score", options.score,
      {{"softmax", TY_GATE_SOFTMAX}, {"sigmoid", TY_GATE_SIGMOID}, {"sqrt_softplus", TY_GATE_SQRT_SOFTPLUS}});
  args.weight_mode = value_of("weight_mode", options.weight_mode,
                              {{"raw", TY_GATE_RAW},
                               {"renormalized", TY_GATE_RENORMALIZED},
                               {"softmax_of_chosen", TY_GATE_SOFTMAX_OF_CHOSEN}});
  if (options.bias) {
    args.bias_dtype = float_type("bias", *options.bias);
    args.bias =
        elements_of(kGate, "bias", options.bias, place, options.bias->scalar_type(), args.num_experts);
  }
  args.num_groups = to_int32(kGate, "num_groups", options.num_groups);
  args.kept_groups = to_int32(kGate, "kept_groups", options.kept_groups);
  args.group_score = value_of("group_score", options.group_score,
                              {{"max", TY_GATE_GROUP_MAX}, {"top2", TY_GATE_GROUP_TOP2}});
  args.epsilon = static_cast<float>(options.epsilon);
  args.scale = static_cast<float>(options.scale);
}

void set_extras(ty_gate_args& args, const GateOptions& options, const Place& place) {
  args.num_shared_experts = to_int32(kGate, "num_shared_experts", options.num_shared_experts);
  args.shared_mode = value_of("shared_mode", options.shared_mode,
                              {{"fixed", TY_GATE_SHARED_FIXED}, {"of_sum", TY_GATE_SHARED_OF_SUM}});
  args.shared_weight = static_cast<float>(options.shared_weight);
  const auto ints = [&](const char* argument, const std::optional<Tensor>& tensor, int64_t elements) {
    return static_cast<const int32_t*>(
        elements_of(kGate, argument, tensor, place, ScalarType::Int, elements));
  };
  if (options.replicas) {
    if (options.replicas->dim() != 2) {
      refuse(kGate, "replicas", "of shape " + shape(*options.replicas), "[num_experts, max_replicas]",
             "give each expert a row of physical ids");
    }
    args.max_replicas = to_int32(kGate, "replicas", options.replicas->size(1));
    args.replicas = ints("replicas", options.replicas, int64_t{args.num_experts} * args.max_replicas);
  }
  args.num_replicas = ints("num_replicas", options.num_replicas, args.num_experts);
  args.num_physical_experts = to_int32(kGate, "num_physical_experts", options.num_physical_experts);
  args.num_real_tokens = ints("num_real_tokens", options.num_real_tokens, 1);
}

}  // namespace

Gate::Gate(const Tensor& logits, const GateOptions& options)
    : place_(kGate, logits), args_ TY_GATE_ARGS_INIT {
  args_.logits_dtype = float_type("logits", logits);
  const Rows rows = rows_of(kGate, "logits", logits);
  args_.logits = rows.data;
  args_.num_tokens = rows.count;
  args_.num_experts = rows.columns;
  args_.row_stride = rows.stride;
  args_.top_k = to_int32(kGate, "top_k", options.top_k);
  set_scores(args_, options, place_);
  set_extras(args_, options, place_);
}

void Gate::write(const Chosen& chosen) {
  const int64_t elements = args_.num_tokens * (int64_t{args_.top_k} + args_.num_shared_experts);
  const ScalarType ids_dtype = chosen.ids.scalar_type();
  if (ids_dtype != ScalarType::Int && ids_dtype != ScalarType::Long) {
    refuse(kGate, "ids", "of type " + name(ids_dtype), "Int or Long", "ids are written as one of them");
  }
  args_.ids_dtype = ids_dtype == ScalarType::Long ? TY_INT64 : TY_INT32;
  args_.ids = elements_of(kGate, "ids", chosen.ids, place_, ids_dtype, elements);
  args_.weights =
      static_cast<float*>(elements_of(kGate, "weights", chosen.weights, place_, ScalarType::Float, elements));
}

void Gate::write(const Counts& counts) {
  args_.counts = static_cast<int32_t*>(counts.of_experts.mutable_data_ptr());
  if (args_.replicas != nullptr) {
    args_.physical_counts = static_cast<int32_t*>(counts.of_physical_experts.mutable_data_ptr());
  }
}

// With arguments that allow no size nothing is allocated: the library says what is wrong with them.
Chosen Gate::chosen(std::optional<ScalarType> ids_dtype) const {
  if (args_.top_k < 1 || args_.num_shared_experts < 0) run();
  const int64_t columns = int64_t{args_.top_k} + args_.num_shared_experts;
  return {place_.empty({args_.num_tokens, columns}, ids_dtype.value_or(ScalarType::Int)),
          place_.empty({args_.num_tokens, columns}, ScalarType::Float)};
}

Counts Gate::counts() const {
  const bool renamed = args_.replicas != nullptr;
  if (renamed && args_.num_physical_experts < 0) run();
  return {place_.empty({args_.num_experts}, ScalarType::Int),
          place_.empty({renamed ? args_.num_physical_experts : 0}, ScalarType::Int)};
}

void Gate::run() const { check(ty_gate(place_.device(), &args_, place_.stream())); }

}  // namespace tokenyard::torch_binding
