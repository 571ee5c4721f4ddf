#include "align/plan.hpp"

#include <algorithm>

#include "align/exchange.hpp"
#include "runtime/text.hpp"

namespace tokenyard::align {
namespace {

using tuning::AlignRow;

constexpr int32_t kChunkStep = 128;    // chunks begin on cache lines
constexpr int64_t kSplitChunk = 2048;  // pairs that are worth a block on the split path
constexpr int64_t kSplitBlocks = 256;  // enough that a row's count never overflows

constexpr int32_t kEverywhereBlocks = 128;  // about a multiprocessor each

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int32_t chunk_for(int64_t pairs, int64_t blocks) {
  return static_cast<int32_t>(divide_up(std::max<int64_t>(divide_up(pairs, blocks), 1), kChunkStep) *
                              kChunkStep);
}

const char* path_name(ty_align_path path) {
  switch (path) {
    case TY_ALIGN_EVERYWHERE:
      return "everywhere";
    case TY_ALIGN_GRID:
      return "grid";
    default:
      return "split";
  }
}

Plan everywhere_plan(const DeviceProperties& device, const Problem& problem) {
  Plan plan{TY_ALIGN_EVERYWHERE, 0, 1, 0, 0, Plan::Why::kAsked, 0};
  if (problem.num_pairs() <= kMaxRegisterPairs && !has_optional_outputs(problem)) {
    const int64_t warps = kRegisterThreads / device.warp_size;
    plan.blocks = static_cast<int32_t>(divide_up(std::max<int64_t>(problem.num_pairs(), 1), warps));
  } else {
    const int32_t experts = problem.num_local_experts;
    plan.owned = experts <= 2 * kEverywhereBlocks ? 2 : experts <= 4 * kEverywhereBlocks ? 4 : 32;
    plan.blocks = static_cast<int32_t>(divide_up(problem.num_local_experts, plan.owned));
  }
  return plan;
}

Plan grid_plan(const Problem& problem, int32_t blocks, int32_t cluster) {
  return {TY_ALIGN_GRID, blocks, cluster, 0, chunk_for(problem.num_pairs(), blocks), Plan::Why::kAsked, 0};
}

const AlignRow& row_for(std::span<const AlignRow> rows, const Problem& problem, ty_align_path path) {
  for (const AlignRow& row : rows) {
    if (problem.num_pairs() <= row.max_pairs && (path == TY_ALIGN_AUTO || row.path == path)) return row;
  }
  // A path that is asked for beyond its rows takes the last of them.
  const auto last =
      std::find_if(rows.rbegin(), rows.rend(), [&](const AlignRow& row) { return row.path == path; });
  return *last;
}

}  // namespace

bool has_optional_outputs(const Problem& problem) {
  return problem.counts != nullptr || problem.offsets != nullptr || problem.inverse != nullptr ||
         problem.block_rows != nullptr || problem.num_dropped != nullptr;
}

std::span<const AlignRow> rows_for(const DeviceProperties& device) {
  if (device.arch.starts_with("simt")) return tuning::kSimtRows;
  if (device.arch.starts_with("gfx")) return tuning::kAmdRows;
  if (device.max_cluster > 1) return tuning::kHopperRows;
  return tuning::kNvidiaRows;
}

Plan split_plan(const Problem& problem) {
  const int64_t pairs = problem.num_pairs();
  const auto blocks = std::clamp<int64_t>(divide_up(pairs, kSplitChunk), 1, kSplitBlocks);
  return {TY_ALIGN_SPLIT, static_cast<int32_t>(blocks), 1, 0, chunk_for(pairs, blocks), Plan::Why::kAsked, 0};
}

Plan with_blocks(const Plan& plan, const Problem& problem, int32_t blocks) {
  return grid_plan(problem, std::min(plan.blocks, blocks / plan.cluster * plan.cluster), plan.cluster);
}

Plan plan(const DeviceProperties& device, std::span<const AlignRow> rows, const Problem& problem) {
  if (problem.path == TY_ALIGN_SPLIT) return split_plan(problem);
  const AlignRow& row = row_for(rows, problem, problem.path);
  Plan plan = row.path == TY_ALIGN_EVERYWHERE ? everywhere_plan(device, problem)
                                              : grid_plan(problem, row.blocks, row.cluster);
  if (problem.path != TY_ALIGN_AUTO) return plan;
  plan.why = Plan::Why::kRow;
  plan.row_pairs = row.max_pairs;
  if (plan.path == TY_ALIGN_GRID && !device.cooperative) {
    plan = split_plan(problem);
    plan.why = Plan::Why::kNotCooperative;
  } else if (plan.path == TY_ALIGN_GRID && static_cast<int64_t>(plan.chunk) * plan.cluster > kMaxRowPairs) {
    plan = split_plan(problem);
    plan.why = Plan::Why::kTooManyPairs;
  }
  return plan;
}

std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem) {
  std::string words = path_name(plan.path);
  switch (plan.why) {
    case Plan::Why::kAsked:
      words += ", as asked for: ";
      break;
    case Plan::Why::kRow:
      words += text(": ", problem.num_pairs(), " pairs, row of ", device.arch, " up to ");
      words += plan.row_pairs == tuning::kAnyPairs ? "any number: " : text(plan.row_pairs, ": ");
      break;
    case Plan::Why::kNotCooperative:
      words += text(": ", device.name, " has no cooperative launches: ");
      break;
    case Plan::Why::kTooManyPairs:
      words += text(": more than ", kMaxRowPairs, " pairs a cluster: ");
      break;
  }
  switch (plan.path) {
    case TY_ALIGN_EVERYWHERE:
      words += text("one launch of ", plan.blocks, " blocks that each read all ids");
      return plan.owned == 0 ? words + " and write an output block a warp"
                             : words + text(" and own ", plan.owned, " experts");
    case TY_ALIGN_GRID:
      words += text("one cooperative launch of ", plan.blocks, " blocks");
      if (plan.cluster > 1) words += text(" in clusters of ", plan.cluster);
      break;
    default:
      words += text("two launches of ", plan.blocks, " blocks");
  }
  return words + text(", ", plan.chunk, " pairs each");
}

size_t workspace_bytes(const Plan& plan, std::span<const AlignRow> rows, const Problem& problem) {
  if (plan.path == TY_ALIGN_EVERYWHERE) return 0;
  int64_t exchanged = split_plan(problem).blocks;
  for (const AlignRow& row : rows) {
    if (row.path == TY_ALIGN_GRID) exchanged = std::max<int64_t>(exchanged, row.blocks / row.cluster);
    if (problem.num_pairs() <= row.max_pairs && row.path == TY_ALIGN_GRID) break;
  }
  return Exchange<>::bytes(exchanged, exchange_columns(problem.num_local_experts));
}

}  // namespace tokenyard::align
