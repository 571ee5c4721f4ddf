#include "gate.hpp"

#include <initializer_list>

namespace tokenyard::binding {
namespace {

constexpr const char* kGate = "gate";

// A word for a constant of the C ABI.
struct Word {
  const char* word;
  int32_t value;
};

int32_t value_of(const char* operation, const char* argument, const std::string& given,
                 std::initializer_list<Word> words) {
  std::string known;
  for (const Word& word : words) {
    if (given == word.word) return word.value;
    known += (known.empty() ? "\"" : ", \"") + std::string(word.word) + "\"";
  }
  refuse(operation, argument, "\"" + given + "\"", known, "spell it as one of these");
}

void set_scores(ty_gate_args& args, const GateOptions& options, ty_device device) {
  args.score = score_of(kGate, options.score);
  args.weight_mode = weight_mode_of(kGate, options.weight_mode);
  if (options.bias) {
    args.bias_dtype = float_type_of(kGate, "bias", *options.bias);
    args.bias = elements_of(kGate, "bias", options.bias, device, args.bias_dtype, args.num_experts);
  }
  args.num_groups = to_int32(kGate, "num_groups", options.num_groups);
  args.kept_groups = to_int32(kGate, "kept_groups", options.kept_groups);
  args.group_score = value_of(kGate, "group_score", options.group_score,
                              {{"max", TY_GATE_GROUP_MAX}, {"top2", TY_GATE_GROUP_TOP2}});
  args.epsilon = static_cast<float>(options.epsilon);
  args.scale = static_cast<float>(options.scale);
}

void set_extras(ty_gate_args& args, const GateOptions& options, ty_device device) {
  args.num_shared_experts = to_int32(kGate, "num_shared_experts", options.num_shared_experts);
  args.shared_mode = value_of(kGate, "shared_mode", options.shared_mode,
                              {{"fixed", TY_GATE_SHARED_FIXED}, {"of_sum", TY_GATE_SHARED_OF_SUM}});
  args.shared_weight = static_cast<float>(options.shared_weight);
  const auto ints = [&](const char* argument, const std::optional<View>& view, int64_t number) {
    return static_cast<const int32_t*>(elements_of(kGate, argument, view, device, TY_INT32, number));
  };
  if (options.replicas) {
    const auto sizes = options.replicas->sizes;
    if (sizes.size() != 2) {
      refuse(kGate, "replicas", "of shape " + shape(*options.replicas), "[num_experts, max_replicas]",
             "give each expert a row of physical ids");
    }
    args.max_replicas = to_int32(kGate, "replicas", sizes[1]);
    args.replicas = ints("replicas", options.replicas, int64_t{args.num_experts} * args.max_replicas);
  }
  args.num_replicas = ints("num_replicas", options.num_replicas, args.num_experts);
  args.num_physical_experts = to_int32(kGate, "num_physical_experts", options.num_physical_experts);
  args.num_real_tokens = ints("num_real_tokens", options.num_real_tokens, 1);
}

}  // namespace

ty_gate_args arguments(const View& logits, const GateOptions& options) {
  ty_gate_args args = TY_GATE_ARGS_INIT;
  args.logits_dtype = float_type_of(kGate, "logits", logits);
  const Rows rows = rows_of(kGate, "logits", logits);
  args.logits = rows.data;
  args.num_tokens = rows.count;
  args.num_experts = rows.columns;
  args.row_stride = rows.stride;
  args.top_k = to_int32(kGate, "top_k", options.top_k);
  set_scores(args, options, logits.device);
  set_extras(args, options, logits.device);
  return args;
}

void write_to(ty_gate_args& args, const GateOutputs& outputs, ty_device device) {
  const int32_t dtype = outputs.ids.dtype;
  if (dtype != TY_INT32 && dtype != TY_INT64) {
    refuse(kGate, "ids", std::string("of type ") + outputs.ids.dtype_name, "int32 or int64",
           "ids are written as one of them");
  }
  const int64_t chosen = args.num_tokens * columns(args);
  args.ids_dtype = dtype;
  args.ids = elements_of(kGate, "ids", outputs.ids, device, dtype, chosen);
  args.weights =
      static_cast<float*>(elements_of(kGate, "weights", outputs.weights, device, TY_FLOAT32, chosen));
  const auto ints = [&](const char* argument, const std::optional<View>& view, int64_t number) {
    return static_cast<int32_t*>(elements_of(kGate, argument, view, device, TY_INT32, number));
  };
  args.counts = ints("counts", outputs.counts, args.num_experts);
  int32_t* const physical = ints("physical_counts", outputs.physical_counts, physical_experts(args));
  args.physical_counts = args.replicas == nullptr ? nullptr : physical;
}

int64_t columns(const ty_gate_args& args) { return int64_t{args.top_k} + args.num_shared_experts; }

int64_t physical_experts(const ty_gate_args& args) {
  return args.replicas == nullptr ? 0 : args.num_physical_experts;
}

bool has_sizes(const ty_gate_args& args) {
  constexpr int64_t kMaxColumns = 64 + 64;  // as ty_gate_args says
  constexpr int64_t kMaxPhysicalExperts = 65536;
  return args.top_k >= 1 && args.num_shared_experts >= 0 && columns(args) <= kMaxColumns &&
         physical_experts(args) >= 0 && physical_experts(args) <= kMaxPhysicalExperts;
}

int64_t id_bound(const ty_gate_args& args) {
  return int64_t{args.replicas == nullptr ? args.num_experts : args.num_physical_experts} +
         args.num_shared_experts;
}

int32_t score_of(const char* operation, const std::string& word) {
  return value_of(
      operation, "score", word,
      {{"softmax", TY_GATE_SOFTMAX}, {"sigmoid", TY_GATE_SIGMOID}, {"sqrt_softplus", TY_GATE_SQRT_SOFTPLUS}});
}

int32_t weight_mode_of(const char* operation, const std::string& word) {
  return value_of(operation, "weight_mode", word,
                  {{"raw", TY_GATE_RAW},
                   {"renormalized", TY_GATE_RENORMALIZED},
                   {"softmax_of_chosen", TY_GATE_SOFTMAX_OF_CHOSEN}});
}

int32_t float_type_of(const char* operation, const char* argument, const View& view) {
  if (view.dtype == TY_FLOAT32 || view.dtype == TY_BFLOAT16 || view.dtype == TY_FLOAT16) return view.dtype;
  refuse(operation, argument, std::string("of type ") + view.dtype_name, "float32, bfloat16 or float16",
         "convert it");
}

}  // namespace tokenyard::binding
