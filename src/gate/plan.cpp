#include "gate/plan.hpp"

#include <bit>

#include "runtime/text.hpp"

namespace tokenyard::gate {
namespace {

// What kernels are compiled for: see launch.hpp.
constexpr int32_t kMostInRegisters = 512;  // experts

// Experts of a lane, or 0 if so many lanes do not serve the problem.
int32_t items_for(int32_t lanes, const Problem& problem) {
  const auto items =
      static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>((problem.num_experts + lanes - 1) / lanes)));
  const int32_t least = (lanes >= 32 ? 64 : 128) / lanes;
  const int32_t most = lanes >= 32 ? kMostInRegisters / lanes : 256 / lanes;
  const int32_t taken = items < least ? least : items;
  if (taken > most || problem.top_k > (lanes < 32 ? lanes : 32)) return 0;
  const bool by_two_scores =
      problem.bias == nullptr && problem.num_groups > 1 && problem.group_score == TY_GATE_GROUP_TOP2;
  const bool by_probability = problem.bias != nullptr && problem.score == TY_GATE_SOFTMAX;
  if (by_two_scores || by_probability) return 0;
  if (problem.num_groups == 1) return taken;
  const int32_t size = problem.group_size();
  const bool on_whole_lanes = size % taken == 0 && std::has_single_bit(static_cast<uint32_t>(size / taken));
  return on_whole_lanes && problem.score != TY_GATE_SQRT_SOFTPLUS ? taken : 0;
}

}  // namespace

std::span<const tuning::GateRow> rows_for(const DeviceProperties& device) {
  if (device.arch.starts_with("simt")) {
    if (device.warp_size == 64) return tuning::kSimt64GateRows;
    return tuning::kSimt32GateRows;
  }
  if (device.arch.starts_with("gfx")) return tuning::kAmdGateRows;
  return tuning::kNvidiaGateRows;
}

Plan plan(const DeviceProperties& device, std::span<const tuning::GateRow> rows, const Problem& problem) {
  if (problem.lanes != 0) return {problem.lanes, items_for(problem.lanes, problem), Plan::Why::kAsked, 0};
  // From the row that fits back to those with more lanes, which hold more.
  size_t row = 0;
  while (problem.num_tokens > rows[row].max_tokens) ++row;
  for (size_t i = row + 1; i-- > 0;) {
    const int32_t items = items_for(rows[i].lanes, problem);
    if (items > 0) return {rows[i].lanes, items, Plan::Why::kRow, rows[row].max_tokens};
  }
  return {device.warp_size, 0, Plan::Why::kShape, 0};
}

std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem) {
  std::string words = text(plan.lanes, plan.lanes == 1 ? " lane a token" : " lanes a token");
  switch (plan.why) {
    case Plan::Why::kAsked:
      words += ", as asked for: ";
      break;
    case Plan::Why::kRow:
      words += text(": ", problem.num_tokens, " tokens, row of ", device.arch, " up to ");
      words += plan.row_tokens == tuning::kAnyTokens ? "any number: " : text(plan.row_tokens, ": ");
      break;
    case Plan::Why::kShape:
      words += ": ";
      break;
  }
  if (plan.items == 0) return words + "selection values in shared memory, for any shape";
  return words + text("a lane holds up to ", plan.items, " experts in registers");
}

}  // namespace tokenyard::gate
