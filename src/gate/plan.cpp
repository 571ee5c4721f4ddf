#include "gate/plan.hpp"

#include <algorithm>
#include <bit>

#include "gate/router.hpp"
#include "gate/weights.hpp"
#include "runtime/text.hpp"

namespace tokenyard::gate {
namespace {

// What of GateShape::serves the problem may be served by.
unsigned kinds_of(const Problem& problem) {
  const bool is_float32 = problem.logits_dtype == TY_FLOAT32;
  if (problem.num_groups > 1) {
    if (problem.bias != nullptr) return tuning::kGrouped;
    return is_float32 ? tuning::kMasked32 : tuning::kMasked16;
  }
  return !is_float32 && problem.bias == nullptr ? tuning::kUngrouped | tuning::kPacked : tuning::kUngrouped;
}

// Whether a kernel with so many experts a lane serves the problem, size apart: those options that models
// combine. Launcher::run_shape() compiles the same ones.
bool suits(const tuning::GateShape& shape, const Problem& problem) {
  if ((shape.serves & kinds_of(problem)) == 0 || !has_small_stride(problem)) return false;
  const bool biased = problem.bias != nullptr;
  const bool grouped = problem.num_groups > 1;
  if (shape.lanes == 1) return !biased;
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
  const int32_t size = problem.group_size();
  if (!biased) return size % 4 == 0 && problem.num_groups <= shape.lanes;
  if (problem.num_groups == 8 && problem.num_experts == shape.lanes * shape.items) return true;
  // Groups lie on a power of two of lanes.
  return wide && size % shape.items == 0 && std::has_single_bit(static_cast<uint32_t>(size / shape.items));
}

bool holds(const tuning::GateShape& shape, const Problem& problem) {
  return shape.lanes * shape.items >= problem.num_experts && suits(shape, problem);
}

// The first kernel with so many lanes that serves the problem.
int32_t shape_for(std::span<const tuning::GateShape> shapes, int32_t lanes, const Problem& problem) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].lanes == lanes && holds(shapes[i], problem)) return static_cast<int32_t>(i);
  }
  return Plan::kNoShape;
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
    const int32_t shape = shape_for(shapes, problem.lanes, problem);
    const bool any = shape == Plan::kNoShape && problem.lanes == device.warp_size;
    return {any ? Plan::kAnyShape : shape, problem.lanes, Plan::Why::kAsked, 0};
  }
  Plan::Why why = Plan::Why::kShape;
  int64_t tokens = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const tuning::GateShape& shape = shapes[i];
    if (!holds(shape, problem)) continue;
    const auto index = static_cast<int32_t>(i);
    if (shape.from == 0) return {index, shape.lanes, why, tokens};
    if (problem.num_tokens >= shape.from) return {index, shape.lanes, Plan::Why::kManyTokens, shape.from};
    tokens = why == Plan::Why::kFewTokens ? std::min(tokens, shape.from) : shape.from;
    why = Plan::Why::kFewTokens;
  }
  return {Plan::kAnyShape, device.warp_size, Plan::Why::kShape, 0};
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
  if (plan.shape == Plan::kNoShape) return words + "no kernel holds these experts";
  if (plan.shape == Plan::kAnyShape) return words + "selection values in shared memory, for any shape";
  const tuning::GateShape& shape = shapes_for(device)[static_cast<size_t>(plan.shape)];
  words += text("a lane holds up to ", shape.items, " experts in registers");
  return shape.serves == tuning::kPacked ? words + ", packed and sorted" : words;
}

}  // namespace tokenyard::gate
