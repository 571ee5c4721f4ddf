#include "gate_options.hpp"

#include "failure.hpp"
#include "gate/contract.hpp"
#include "harness/gate_run.hpp"
#include "number.hpp"
#include "tokenyard/gate_presets.hpp"

namespace tokenyard::cli {
namespace {

const Choices<ty_gate_score>& score_choices() {
  static const Choices<ty_gate_score> choices{
      {"softmax", TY_GATE_SOFTMAX}, {"sigmoid", TY_GATE_SIGMOID}, {"sqrt-softplus", TY_GATE_SQRT_SOFTPLUS}};
  return choices;
}

const Choices<ty_gate_weights>& weights_choices() {
  static const Choices<ty_gate_weights> choices{{"raw", TY_GATE_RAW},
                                                {"renormalized", TY_GATE_RENORMALIZED},
                                                {"softmax-of-chosen", TY_GATE_SOFTMAX_OF_CHOSEN}};
  return choices;
}

const Choices<ty_gate_group_score>& group_score_choices() {
  static const Choices<ty_gate_group_score> choices{{"max", TY_GATE_GROUP_MAX}, {"top2", TY_GATE_GROUP_TOP2}};
  return choices;
}

// Without a bias, of float32, of the logits' type.
enum class Bias { kNone, kFloat32, kAsLogits };

const Choices<Bias>& bias_choices() {
  static const Choices<Bias> choices{
      {"none", Bias::kNone}, {"float32", Bias::kFloat32}, {"logits", Bias::kAsLogits}};
  return choices;
}

void take_preset(const GatePreset& preset, harness::GateShape& shape) {
  shape.experts = preset.num_experts;
  shape.top_k = preset.top_k;
  shape.score = preset.score;
  shape.bias = preset.bias;
  shape.groups = preset.num_groups;
  shape.kept_groups = preset.kept_groups;
  shape.group_score = preset.group_score;
  shape.weights = preset.weight_mode;
  shape.epsilon = preset.epsilon;
  shape.scale = preset.scale;
}

const Choices<const GatePreset*>& preset_choices() {
  static const Choices<const GatePreset*> choices = [] {
    Choices<const GatePreset*> all;
    for (const GatePreset& preset : kGatePresets) all.emplace_back(preset.name, &preset);
    return all;
  }();
  return choices;
}

}  // namespace

const Choices<ty_dtype>& logits_dtype_choices() {
  static const Choices<ty_dtype> choices{
      {"float32", TY_FLOAT32}, {"bfloat16", TY_BFLOAT16}, {"float16", TY_FLOAT16}};
  return choices;
}

const Choices<harness::Logits>& logits_choices() {
  using harness::Logits;
  static const Choices<Logits> choices{
      {"normal", Logits::kNormal},       {"low", Logits::kLow},         {"high", Logits::kHigh},
      {"extreme", Logits::kExtreme},     {"ties", Logits::kTies},       {"equal", Logits::kEqual},
      {"ascending", Logits::kAscending}, {"special", Logits::kSpecial}, {"nan", Logits::kNan}};
  return choices;
}

void add_gate_options(CLI::App& command, harness::GateShape& shape) {
  const auto number = [&](const char* option, auto& target, const char* description,
                          Range<std::decay_t<decltype(target)>> range = {}) {
    return add_number(command, option, target, description, range)->group("Problem");
  };
  const auto flag = [&](const char* option, bool& target, const char* description) {
    return command.add_flag(option, target, description)->group("Problem");
  };
  const auto choice = [&](const char* option, const auto& choices, auto& target, const char* description) {
    return add_choice(command, option, choices, target, description)->group("Problem");
  };
  number("--experts", shape.experts, "E, columns of the logits");
  number("--top-k", shape.top_k, "K, experts that each token chooses");
  choice("--dtype", logits_dtype_choices(), shape.dtype, "of the logits: float32, bfloat16 or float16");
  number("--row-stride", shape.row_stride, "logits from one row to the next, 0: E");
  choice("--score", score_choices(), shape.score, "softmax, sigmoid or sqrt-softplus");
  choice("--weights", weights_choices(), shape.weights,
         "raw (the scores), renormalized (over the chosen)\nor softmax-of-chosen");
  command
      .add_option(
          "--bias",
          [&shape](const CLI::results_t& given) {
            const Bias bias = chosen("--bias", bias_choices(), given.back());
            shape.bias = bias != Bias::kNone;
            shape.bias_as_logits = bias == Bias::kAsLogits;
            return true;
          },
          "added to the score for selection alone: none,\nfloat32, or of the logits' type")
      ->type_name("WORD")
      ->default_str("none")
      ->group("Problem");
  CLI::Option* groups = number("--groups", shape.groups, "groups that the experts fall into, 0: one");
  number("--kept-groups", shape.kept_groups, "groups that experts are chosen from")->needs(groups);
  choice("--group-score", group_score_choices(), shape.group_score, "max, or top2: the sum of the two best")
      ->needs(groups);
  number("--epsilon", shape.epsilon, "added to the sum that renormalized divides by");
  number("--scale", shape.scale, "factor of every weight");
  CLI::Option* shared = number("--shared", shape.shared, "shared experts, appended to every token's");
  number("--shared-weight", shape.shared_weight, "their weight")->needs(shared);
  flag("--shared-of-sum", shape.shared_of_sum, "their weight times the sum of the token's")->needs(shared);
  number("--replicas", shape.replicas, "physical experts of each expert, at most; 0: none", {.low = 0});
  number("--padding", shape.padding, "tokens at the end that are not real; -1: no count\nis given",
         {.low = -1});
  flag("--int64", shape.int64_ids, "ids as int64");
  choice("--logits", logits_choices(), shape.logits,
         "normal, low (-20), high (20), extreme (+-200),\nties, equal, ascending, special (NaN, inf) or nan");
  number("--seed", shape.seed, "of everything that is drawn");
}

CLI::Option* add_tokens_option(CLI::App& command, harness::GateShape& shape) {
  return add_number(command, "--tokens", shape.tokens, "T, rows of the logits [T, E]")->group("Problem");
}

CLI::Option* add_lanes_option(CLI::App& command, int32_t& lanes, const std::string& description) {
  return add_number(command, "--lanes", lanes, description);
}

void expect_lanes(const Device& device, int32_t lanes) {
  if (!device.is_cpu() || lanes == 0) return;
  throw wrong_usage(
      fmt::format("--lanes is {}, expected 0 on {}: only kernels have lanes", lanes, device.backend->name));
}

CLI::Option* add_preset_option(CLI::App& command, harness::GateShape& shape) {
  const auto take = [&shape](const CLI::results_t& given) {
    take_preset(*chosen("--preset", preset_choices(), given.back()), shape);
    return true;
  };
  CLI::Option* preset = command.add_option(
      "--preset", take,
      "as a model does it: mixtral-8x7b, olmoe-1b-7b,\nqwen3-moe, qwen3-next-80b-a3b, deepseek-v2,\n"
      "deepseek-v3, deepseek-v4-flash, kimi-k2, glm-4.5,\ngpt-oss-120b, gpt-oss-20b, llama-4-maverick");
  for (const char* option : {"--experts", "--top-k", "--score", "--bias", "--groups", "--kept-groups",
                             "--group-score", "--weights", "--epsilon", "--scale"}) {
    preset->excludes(command.get_option(option));
  }
  return preset->type_name("NAME")->group("Problem");
}

void check_shape(const harness::GateShape& shape) {
  gate::Problem problem;
  const ty_gate_args args = harness::gate_args(shape);
  require(gate::check(&args, Pointers::kMayBeNull, problem));
  if (shape.padding > shape.tokens) {
    throw wrong_usage(fmt::format("--padding is {}, expected at most {}: the last of --tokens are padding",
                                  shape.padding, shape.tokens));
  }
}

}  // namespace tokenyard::cli
