#include "harness/gate_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "gate/contract.hpp"
#include "harness/random.hpp"
#include "port/floats.hpp"

namespace tokenyard::harness {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The sum of twelve uniform numbers, which is close to normal, and exact.
float normal(Random& random) {
  int64_t sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.below(int64_t{1} << 20);
  return static_cast<float>(std::ldexp(static_cast<double>(sum - 6 * (int64_t{1} << 20)), -20));
}

float special(Random& random) {
  static const std::vector<float> values{kNan, kInfinity, -kInfinity, 0.0f, -0.0f};
  return random.one_in(8) ? random.any_of(values) : normal(random);
}

float draw_logit(Logits kind, int32_t expert, Random& random) {
  switch (kind) {
    case Logits::kNormal:
      return normal(random);
    case Logits::kLow:
      return normal(random) - 20;
    case Logits::kHigh:
      return normal(random) + 20;
    case Logits::kExtreme:
      return (random.one_in(2) ? 200.0f : -200.0f) + normal(random);
    case Logits::kTies:
      return static_cast<float>(random.below(5)) - 2;
    case Logits::kEqual:
      return 0.5f;
    case Logits::kAscending:
      return static_cast<float>(expert) / 64;
    case Logits::kSpecial:
      return special(random);
    case Logits::kNan:
      return kNan;
  }
  return 0;
}

// Physical experts in a random order: every expert has one to `columns` of them, and some are of nobody.
void draw_replicas(GateProblem& problem, Random& random) {
  const auto columns = static_cast<size_t>(problem.shape.replicas);
  const auto experts = static_cast<size_t>(problem.shape.experts);
  problem.replicas = random.permutation(experts * columns);
  for (size_t e = 0; e < experts; ++e) {
    problem.num_replicas.push_back(static_cast<int32_t>(random.between(1, problem.shape.replicas)));
  }
}

int32_t draw_experts(Random& random) {
  static const std::vector<int32_t> usual{1, 2, 8, 16, 60, 64, 96, 128, 160, 192, 256, 257, 384, 512};
  if (!random.one_in(8)) return random.any_of(usual);
  return static_cast<int32_t>(random.between(1, random.one_in(4) ? gate::kMaxExperts : 600));
}

std::vector<int32_t> divisors(int32_t number) {
  std::vector<int32_t> found;
  for (int32_t d = 1; d <= std::min(number, gate::kMaxGroups); ++d) {
    if (number % d == 0) found.push_back(d);
  }
  return found;
}

void draw_groups(GateShape& shape, Random& random) {
  shape.groups = random.any_of(divisors(shape.experts));
  const int32_t size = shape.experts / shape.groups;
  shape.kept_groups = static_cast<int32_t>(random.between(1, shape.groups));
  shape.top_k = std::min(shape.top_k, shape.kept_groups * size);
  if (size > 1 && random.one_in(2)) shape.group_score = TY_GATE_GROUP_TOP2;
}

}  // namespace

uint16_t bfloat16_bits(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

uint16_t float16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65536.0f) return sign | 0x7c00;
  return static_cast<uint16_t>(sign | std::bit_cast<uint32_t>(magnitude * 0x1p-112f) >> 13);
}

float cut(float value, ty_dtype dtype) {
  if (dtype == TY_FLOAT16) return port::to_float(port::float16{float16_bits(value)});
  // One mask for both types: of two branches, g++ 12 loses the one that only clears bits.
  const uint32_t kept = dtype == TY_BFLOAT16 ? 0xffff0000u : 0xffffffffu;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & kept);
}

int32_t GateProblem::num_physical_experts() const {
  return replicas.empty() ? shape.experts : shape.experts * shape.replicas;
}

gate::ReferenceInput GateProblem::reference_input() const {
  return {.logits = logits,
          .bias = bias,
          .num_experts = shape.experts,
          .top_k = shape.top_k,
          .score = shape.score,
          .num_groups = std::max(shape.groups, 1),
          .kept_groups = std::max(shape.kept_groups, 1),
          .group_score = shape.group_score,
          .weight_mode = shape.weights,
          .epsilon = shape.epsilon,
          .scale = shape.scale,
          .num_shared_experts = shape.shared,
          .shared_mode = shape.shared_of_sum ? TY_GATE_SHARED_OF_SUM : TY_GATE_SHARED_FIXED,
          .shared_weight = shape.shared_weight,
          .replicas = replicas,
          .num_replicas = num_replicas,
          .num_physical_experts = num_physical_experts(),
          .num_real_tokens = num_real_tokens()};
}

GateProblem draw(const GateShape& shape) {
  Random random(shape.seed);
  GateProblem problem{shape, {}, {}, {}, {}};
  problem.logits.reserve(static_cast<size_t>(shape.tokens * shape.experts));
  for (int64_t token = 0; token < shape.tokens; ++token) {
    for (int32_t expert = 0; expert < shape.experts; ++expert) {
      problem.logits.push_back(cut(draw_logit(shape.logits, expert, random), shape.dtype));
    }
  }
  if (shape.bias) {
    for (int32_t expert = 0; expert < shape.experts; ++expert) {
      const float value = normal(random) / 8;
      problem.bias.push_back(shape.bias_as_logits ? cut(value, shape.dtype) : value);
    }
  }
  if (shape.replicas > 0) draw_replicas(problem, random);
  return problem;
}

GateShape draw_gate_shape(uint64_t seed, int64_t max_logits) {
  static const std::vector<int32_t> top_ks{1, 2, 3, 4, 6, 8, 8, 8, 10, 16, 24, 32, 33, 64};
  static const std::vector<ty_dtype> dtypes{TY_FLOAT32, TY_BFLOAT16, TY_FLOAT16};
  static const std::vector<ty_gate_score> scores{TY_GATE_SOFTMAX, TY_GATE_SIGMOID, TY_GATE_SQRT_SOFTPLUS};
  static const std::vector<ty_gate_weights> weights{TY_GATE_RAW, TY_GATE_RENORMALIZED,
                                                    TY_GATE_SOFTMAX_OF_CHOSEN};
  static const std::vector<Logits> logits{
      Logits::kNormal, Logits::kNormal,    Logits::kNormal, Logits::kLow,     Logits::kHigh, Logits::kExtreme,
      Logits::kTies,   Logits::kAscending, Logits::kEqual,  Logits::kSpecial, Logits::kNan};
  Random random(seed);
  GateShape shape;
  shape.seed = seed;
  shape.experts = static_cast<int32_t>(std::min<int64_t>(draw_experts(random), max_logits));
  shape.top_k = std::min(random.any_of(top_ks), shape.experts);
  shape.tokens = random.one_in(32) ? 0 : random.between(1, max_logits / shape.experts);
  shape.dtype = random.any_of(dtypes);
  if (random.one_in(4)) shape.row_stride = shape.experts + random.between(1, 20);
  shape.score = random.any_of(scores);
  shape.bias = random.one_in(2);
  shape.bias_as_logits = shape.bias && random.one_in(2);
  if (random.one_in(3)) draw_groups(shape, random);
  shape.weights = random.any_of(weights);
  if (random.one_in(2)) shape.epsilon = 1e-20f;
  if (random.one_in(2)) shape.scale = 2.5f;
  if (random.one_in(4)) shape.shared = static_cast<int32_t>(random.between(1, 3));
  shape.shared_of_sum = shape.shared > 0 && random.one_in(2);
  if (shape.shared > 0 && random.one_in(2)) shape.shared_weight = 0.4f;
  const auto most_replicas = std::min(4, gate::kMaxPhysicalExperts / shape.experts);
  if (random.one_in(4)) shape.replicas = static_cast<int32_t>(random.between(1, most_replicas));
  if (random.one_in(4)) shape.padding = random.between(0, shape.tokens);
  shape.int64_ids = random.one_in(3);
  shape.logits = random.any_of(logits);
  return shape;
}

std::string GateShape::command() const {
  static constexpr const char* kDtypes[] = {"float32", "bfloat16", "float16"};
  static constexpr const char* kScores[] = {"softmax", "sigmoid", "sqrt-softplus"};
  static constexpr const char* kWeights[] = {"raw", "renormalized", "softmax-of-chosen"};
  static constexpr const char* kLogits[] = {"normal", "low",       "high",    "extreme", "ties",
                                            "equal",  "ascending", "special", "nan"};
  std::string command = fmt::format(
      "tokenyard verify gate --tokens {} --experts {} --top-k {} --dtype {} --score {} --weights {}", tokens,
      experts, top_k, kDtypes[dtype - TY_FLOAT32], kScores[score], kWeights[weights]);
  if (row_stride != 0) command += fmt::format(" --row-stride {}", row_stride);
  if (bias) command += bias_as_logits ? " --bias logits" : " --bias float32";
  if (groups != 0) {
    command += fmt::format(" --groups {} --kept-groups {} --group-score {}", groups, kept_groups,
                           group_score == TY_GATE_GROUP_TOP2 ? "top2" : "max");
  }
  if (epsilon != 0) command += fmt::format(" --epsilon {}", epsilon);
  if (scale != 1) command += fmt::format(" --scale {}", scale);
  if (shared != 0) command += fmt::format(" --shared {} --shared-weight {}", shared, shared_weight);
  if (shared_of_sum) command += " --shared-of-sum";
  if (replicas != 0) command += fmt::format(" --replicas {}", replicas);
  if (padding >= 0) command += fmt::format(" --padding {}", padding);
  if (int64_ids) command += " --int64";
  return command + fmt::format(" --logits {} --seed {}", kLogits[static_cast<size_t>(logits)], seed);
}

}  // namespace tokenyard::harness
