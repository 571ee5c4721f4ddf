// How models that people run choose experts: the options of gate, by name, each with the source of its
// formula.
#pragma once

#include <cstdint>
#include <string_view>

#include "tokenyard/tokenyard.h"

namespace tokenyard {
inline namespace v0 {

struct GatePreset {
  std::string_view name;
  int32_t num_experts;
  int32_t top_k;
  ty_gate_score score;
  bool bias;  // has one, for selection alone
  int32_t num_groups, kept_groups;
  ty_gate_group_score group_score;
  ty_gate_weights weight_mode;
  float epsilon;
  float scale;
  std::string_view source;
};

inline constexpr GatePreset kGatePresets[] = {
    {"mixtral-8x7b", 8, 2, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_SOFTMAX_OF_CHOSEN, 0, 1,
     "arXiv:2401.04088, section 2.1: softmax of the top-2 logits"},
    {"olmoe-1b-7b", 64, 8, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RAW, 0, 1,
     "arXiv:2409.02060, section 2: softmax, then top-8, not renormalised"},
    {"qwen3-moe", 128, 8, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RENORMALIZED, 0, 1,
     "arXiv:2505.09388: softmax, then top-8 of 128, renormalised"},
    {"qwen3-next-80b-a3b", 512, 10, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RENORMALIZED, 0,
     1, "the model's configuration: softmax, then top-10 of 512, renormalised"},
    {"deepseek-v2", 160, 6, TY_GATE_SOFTMAX, false, 8, 3, TY_GATE_GROUP_MAX, TY_GATE_RAW, 0, 16,
     "arXiv:2405.04434, sections 2.2.1 and 2.2.2: groups by their best expert"},
    {"deepseek-v3", 256, 8, TY_GATE_SIGMOID, true, 8, 4, TY_GATE_GROUP_TOP2, TY_GATE_RENORMALIZED, 1e-20f,
     2.5f, "arXiv:2412.19437, section 2.1.2; R1 is the same"},
    {"deepseek-v4-flash", 256, 6, TY_GATE_SQRT_SOFTPLUS, true, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RENORMALIZED,
     1e-20f, 1.5f, "the model's configuration; beyond its layers that route by token id"},
    {"kimi-k2", 384, 8, TY_GATE_SIGMOID, true, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RENORMALIZED, 1e-20f, 2.827f,
     "arXiv:2507.20534 and the model's configuration: DeepSeek-V3's without groups"},
    {"glm-4.5", 160, 8, TY_GATE_SIGMOID, true, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RENORMALIZED, 1e-20f, 2.5f,
     "arXiv:2508.06471, section 2.1: loss-free balance routing with sigmoid gates"},
    {"gpt-oss-120b", 128, 4, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_SOFTMAX_OF_CHOSEN, 0, 1,
     "arXiv:2508.10925, section 2.1: softmax of the top-4 logits"},
    {"gpt-oss-20b", 32, 4, TY_GATE_SOFTMAX, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_SOFTMAX_OF_CHOSEN, 0, 1,
     "arXiv:2508.10925, section 2.1: softmax of the top-4 logits"},
    {"llama-4-maverick", 128, 1, TY_GATE_SIGMOID, false, 0, 0, TY_GATE_GROUP_MAX, TY_GATE_RAW, 0, 1,
     "the model's code: sigmoid of the best logit"},
};

// nullptr if there is none of this name.
inline const GatePreset* find_gate_preset(std::string_view name) {
  for (const GatePreset& preset : kGatePresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace v0
}  // namespace tokenyard
