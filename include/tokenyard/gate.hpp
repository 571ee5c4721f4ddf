// gate for C++20, over the C ABI: see tokenyard.hpp for errors and devices, tokenyard.h for every field.
//
//   tokenyard::GateArgs args(logits, TY_BFLOAT16, num_tokens, *tokenyard::find_gate_preset("deepseek-v3"));
//   args.bias = bias;                                             // device pointers
//   args.ids = allocate(args.num_tokens * args.columns());
//   args.weights = allocate(args.num_tokens * args.columns());
//   tokenyard::gate(device, args, stream);
//
//   auto chosen = tokenyard::gate(host_logits, preset, bias);     // host memory, on the CPU
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tokenyard/gate_presets.hpp"
#include "tokenyard/tokenyard.h"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard {
inline namespace v0 {

// The arguments of gate. ids and weights must be set, the rest may be.
struct GateArgs : ty_gate_args {
  // logits: [num_tokens, num_experts], contiguous unless row_stride is set.
  GateArgs(const void* logits, ty_dtype logits_dtype, int64_t num_tokens, int32_t num_experts, int32_t top_k)
      : ty_gate_args TY_GATE_ARGS_INIT {
    this->logits = logits;
    this->logits_dtype = logits_dtype;
    this->num_tokens = num_tokens;
    this->num_experts = num_experts;
    this->top_k = top_k;
  }

  // As a model does it; where it has a bias, that is to be set.
  GateArgs(const void* logits, ty_dtype logits_dtype, int64_t num_tokens, const GatePreset& preset)
      : GateArgs(logits, logits_dtype, num_tokens, preset.num_experts, preset.top_k) {
    score = preset.score;
    num_groups = preset.num_groups;
    kept_groups = preset.kept_groups;
    group_score = preset.group_score;
    weight_mode = preset.weight_mode;
    epsilon = preset.epsilon;
    scale = preset.scale;
  }

  int32_t columns() const { return top_k + num_shared_experts; }  // of ids and weights
  int32_t id_bound() const {                                      // ids are below it
    return (replicas == nullptr ? num_experts : num_physical_experts) + num_shared_experts;
  }
};

inline void gate(Device device, const GateArgs& args, void* stream) { check(ty_gate(device, &args, stream)); }

inline std::string gate_explain(Device device, const GateArgs& args) {
  char line[1024];
  check(ty_gate_explain(device, &args, line, sizeof line));
  return line;
}

// What gate says about host memory.
struct ChosenExperts {
  std::vector<int32_t> ids;     // [num_tokens, top_k], best first
  std::vector<float> weights;   // likewise
  std::vector<int32_t> counts;  // [num_experts] tokens that chose each
};

// Chooses on the CPU: logits [num_tokens, num_experts] and, where the model has one, bias [num_experts].
inline ChosenExperts gate(std::span<const float> logits, const GatePreset& preset,
                          std::span<const float> bias = {}) {
  const auto experts = static_cast<size_t>(preset.num_experts);
  if (logits.size() % experts != 0) {
    throw Error(TY_INVALID_ARGUMENT, "gate: logits has " + std::to_string(logits.size()) +
                                         " numbers, expected a multiple of num_experts, which is " +
                                         std::to_string(experts) +
                                         ": pass the whole [num_tokens, num_experts]");
  }
  if (bias.size() != (preset.bias ? experts : 0)) {
    throw Error(TY_INVALID_ARGUMENT, "gate: bias has " + std::to_string(bias.size()) + " numbers, expected " +
                                         std::to_string(preset.bias ? experts : 0) +
                                         ": pass the one that the model was trained with");
  }
  const auto tokens = static_cast<int64_t>(logits.size() / experts);
  GateArgs args(logits.data(), TY_FLOAT32, tokens, preset);
  if (preset.bias) args.bias = bias.data();
  ChosenExperts chosen;
  chosen.ids.resize(static_cast<size_t>(tokens * args.columns()));
  chosen.weights.resize(chosen.ids.size());
  chosen.counts.resize(experts);
  args.ids = chosen.ids.data();
  args.weights = chosen.weights.data();
  args.counts = chosen.counts.data();
  gate(TY_CPU, args, nullptr);
  return chosen;
}

}  // namespace v0
}  // namespace tokenyard
