// Problems for gate, drawn from a seed: what the tests, `tokenyard verify gate` and the benchmarks run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate/reference.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

enum class Logits {
  kNormal,     // mean 0, deviation 1
  kLow,        // around -20, as a router's that favours nobody
  kHigh,       // around 20, where float32 sigmoids are all 1
  kExtreme,    // -200 and 200
  kTies,       // one of five values
  kEqual,      // all the same
  kAscending,  // by expert: the best stand side by side
  kSpecial,    // normal, with NaN and infinities
  kNan,        // nothing but NaN
};

struct GateShape {
  int64_t tokens = 0;
  int32_t experts = 1;
  int32_t top_k = 1;
  ty_dtype dtype = TY_FLOAT32;
  int64_t row_stride = 0;  // 0: contiguous
  ty_gate_score score = TY_GATE_SOFTMAX;
  bool bias = false;
  bool bias_as_logits = false;  // of the logits' type, not float32
  int32_t groups = 0;
  int32_t kept_groups = 0;
  ty_gate_group_score group_score = TY_GATE_GROUP_MAX;
  ty_gate_weights weights = TY_GATE_RAW;
  float epsilon = 0;
  float scale = 1;
  int32_t shared = 0;
  bool shared_of_sum = false;
  float shared_weight = 1;
  int32_t replicas = 0;  // columns of the table; 0: no table
  int64_t padding = -1;  // tokens at the end that are not real; -1: no count of real tokens is given
  bool int64_ids = false;
  Logits logits = Logits::kNormal;
  uint64_t seed = 0;

  std::string command() const;  // "tokenyard verify gate --tokens … --seed …", which runs it again
};

struct GateProblem {
  GateShape shape;
  std::vector<float> logits;                    // [tokens, experts], numbers of the logits' type
  std::vector<float> bias;                      // [experts], or empty
  std::vector<int32_t> replicas, num_replicas;  // [experts, shape.replicas] and [experts], or empty

  int32_t columns() const { return shape.top_k + shape.shared; }
  int32_t num_physical_experts() const;
  int64_t num_real_tokens() const { return shape.tokens - (shape.padding < 0 ? 0 : shape.padding); }
  gate::ReferenceInput reference_input() const;
};

GateProblem draw(const GateShape& shape);

// A random shape for verify: every option of the contract is taken now and then.
GateShape draw_gate_shape(uint64_t seed, int64_t max_logits);

// The bits of a value in a 16-bit type, cut to it.
uint16_t bfloat16_bits(float value);
uint16_t float16_bits(float value);
// A value cut to a type.
float cut(float value, ty_dtype dtype);

}  // namespace tokenyard::harness
