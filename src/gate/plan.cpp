#include "gate/plan.hpp"

#include <algorithm>
#include <bit>

#include "gate/router.hpp"
#include "gate/weights.hpp"
#include "runtime/text.hpp"

namespace tokenyard::gate {
namespace {

// Whether a kernel with so many experts a lane serves the problem, size apart: those options that models
// combine. Launcher::run_shape() compiles the same ones.
bool suits(const tuning::GateShape& shape, const Problem& problem) {
  const bool biased = problem.bias != nullptr;
  const bool grouped = problem.num_groups > 1;
  if (shape.lanes == 1) return !biased && !grouped;
  const bool wide = shape.lanes >= 32;
  if (problem.top_k > (wide ? 32 : shape.lanes)) return false;
  if (!loads_whole_chunks(problem, shape.items)) return false;
  const Weighting weighting = weighting_of(problem);
  if (biased) {
    // Weights are made of what experts are selected by.
    if (weighting == Weighting::kSqrtSoftplus) return !grouped;
    if (weighting != Weighting::kSigmoid) return false;
  } else {
    if (weighting == Weighting::kSqrtSoftplus) return false;
    if (grouped && (weighting != Weighting::kSoftmaxOfRow || problem.group_score == TY_GATE_GROUP_TOP2)) {
      return false;
    }
  }
  if (!grouped) return true;
  if (biased && problem.num_groups == 8 && problem.num_experts == shape.lanes * shape.items) return true;
  // Groups lie on a power of two of lanes.
  const int32_t size = problem.group_size();
  return wide && size % shape.items == 0 && std::has_single_bit(static_cast<uint32_t>(size / shape.items));
}

bool holds(const tuning::GateShape& shape, const Problem& problem) {
  return shape.lanes * shape.items >= problem.num_experts && suits(shape, problem);
}

// Experts of a lane in the smallest kernel with so many lanes that serves the problem; 0 if none does.
int32_t items_for(std::span<const tuning::GateShape> shapes, int32_t lanes, const Problem& problem) {
  for (const tuning::GateShape& shape : shapes) {
    if (shape.lanes == lanes && holds(shape, problem)) return shape.items;
  }
  return 0;
}

}  // namespace

std::span<const tuning::GateShape> shapes_for(const DeviceProperties& device) {
  if (device.arch.starts_with("simt")) {
    if (device.warp_size == 64) return tuning::kSimt64GateShapes;
    return tuning::kSimt32GateShapes;
  }
  if (device.arch.starts_with("gfx")) return tuning::kAmdGateShapes;
  return tuning::kNvidiaGateShapes;
}

Plan plan(const DeviceProperties& device, const Problem& problem) {
  const auto shapes = shapes_for(device);
  if (problem.lanes != 0) {
    return {problem.lanes, items_for(shapes, problem.lanes, problem), Plan::Why::kAsked, 0};
  }
  Plan::Why why = Plan::Why::kShape;
  int64_t tokens = 0;
  for (const tuning::GateShape& shape : shapes) {
    if (!holds(shape, problem)) continue;
    const int64_t from = problem.num_groups > 1 ? shape.from_grouped : shape.from;
    if (from > 0 && problem.num_tokens >= from) {
      return {shape.lanes, shape.items, Plan::Why::kManyTokens, from};
    }
    if (from == 0) return {shape.lanes, shape.items, why, tokens};
    tokens = why == Plan::Why::kFewTokens ? std::min(tokens, from) : from;
    why = Plan::Why::kFewTokens;
  }
  return {device.warp_size, 0, Plan::Why::kShape, 0};
}

std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem) {
  std::string words = text(plan.lanes, plan.lanes == 1 ? " lane a token" : " lanes a token");
  switch (plan.why) {
    case Plan::Why::kAsked:
      words += ", as asked for: ";
      break;
    case Plan::Why::kManyTokens:
      words += text(": ", problem.num_tokens, " tokens, ", plan.tokens, " or more on ", device.arch, ": ");
      break;
    case Plan::Why::kFewTokens:
      words += text(": ", problem.num_tokens, " tokens, fewer than ", plan.tokens, " on ", device.arch, ": ");
      break;
    case Plan::Why::kShape:
      words += text(": ", problem.num_experts, " experts: ");
      break;
  }
  if (plan.items == 0 && plan.lanes != device.warp_size) return words + "no kernel holds these experts";
  if (plan.items == 0) return words + "selection values in shared memory, for any shape";
  return words + text("a lane holds up to ", plan.items, " experts in registers");
}

}  // namespace tokenyard::gate
