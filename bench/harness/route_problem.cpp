#include "harness/route_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "align/contract.hpp"
#include "harness/random.hpp"

namespace tokenyard::harness {
namespace {

// What one launch is made for, which few shapes are that are drawn from all.
GateShape draw_small_shape(uint64_t seed, int64_t max_logits) {
  static const std::vector<int32_t> experts{8, 64, 96, 128, 200, 256, 256, 256};
  static const std::vector<ty_dtype> dtypes{TY_FLOAT32, TY_BFLOAT16};
  Random random(seed);
  GateShape shape;
  shape.seed = seed;
  shape.experts = static_cast<int32_t>(std::min<int64_t>(random.any_of(experts), max_logits));
  shape.top_k = static_cast<int32_t>(random.between(1, std::min(shape.experts, 8)));
  shape.tokens = random.between(1, std::min<int64_t>(64, max_logits / shape.experts));
  shape.dtype = random.any_of(dtypes);
  if (random.one_in(4)) shape.row_stride = shape.experts + 8 * random.between(1, 3);
  shape.bias = random.one_in(2);
  if (shape.bias) shape.score = TY_GATE_SIGMOID;
  if (shape.bias && shape.experts == 256 && random.one_in(2)) {
    shape.groups = 8;
    shape.kept_groups = static_cast<int32_t>(random.between(1, 8));
    if (random.one_in(2)) shape.group_score = TY_GATE_GROUP_TOP2;
  }
  shape.weights = !shape.bias || random.one_in(2) ? TY_GATE_RENORMALIZED : TY_GATE_RAW;
  if (random.one_in(4)) shape.padding = random.between(0, shape.tokens);
  shape.int64_ids = random.one_in(4);
  shape.logits = static_cast<Logits>(random.below(9));
  return shape;
}

}  // namespace

AlignShape RouteShape::align() const {
  return {.tokens = gate.tokens,
          .top_k = gate.top_k + gate.shared,
          .experts = gate.experts * std::max(gate.replicas, 1) + gate.shared,
          .block = block,
          .int64_ids = gate.int64_ids,
          .local_experts = local_experts,
          .extra_capacity = extra_capacity,
          .invalid_ids = several_on_one,
          .duplicates = several_on_one,
          .seed = gate.seed};
}

AlignProblem RouteProblem::align(std::vector<int64_t> ids) const {
  return from_ids(shape.align(), std::move(ids), expert_map);
}

RouteProblem draw(const RouteShape& shape) {
  return {shape, draw(shape.gate), draw(shape.align()).expert_map};
}

RouteShape draw_route_shape(uint64_t seed, int64_t max_logits) {
  static const std::vector<int32_t> blocks{1, 2, 7, 16, 17, 32, 64, 64, 100, 128, 128, 256};
  Random random(seed + 1);
  const bool is_small = random.one_in(2);
  RouteShape shape{.gate = is_small ? draw_small_shape(seed, max_logits) : draw_gate_shape(seed, max_logits)};
  if (shape.gate.experts + shape.gate.shared > align::kMaxExperts) shape.gate.shared = 0;
  while (shape.align().experts > align::kMaxExperts) --shape.gate.replicas;
  shape.block = random.any_of(blocks);
  if (!is_small && random.one_in(4))
    shape.local_experts = static_cast<int32_t>(random.between(1, shape.align().experts));
  shape.several_on_one = shape.local_experts > 0 && random.one_in(2);
  if (random.one_in(3)) shape.extra_capacity = random.between(-4096, 4096);
  return shape;
}

std::string RouteShape::command() const {
  std::string command = gate.command();
  command.replace(0, std::string("tokenyard verify gate").size(), "tokenyard verify route");
  command += fmt::format(" --block {}", block);
  if (local_experts != 0) command += fmt::format(" --local-experts {}", local_experts);
  if (several_on_one) command += " --several-on-one";
  if (extra_capacity != 0) command += fmt::format(" --extra-capacity {}", extra_capacity);
  return command;
}

}  // namespace tokenyard::harness
