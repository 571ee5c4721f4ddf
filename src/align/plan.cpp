#include "align/plan.hpp"

#include <algorithm>

#include "align/exchange.hpp"
#include "runtime/text.hpp"

namespace tokenyard::align {
namespace {

using tuning::AlignKernels;
using tuning::Tiles;

constexpr int32_t kEverywhereBlocks = 128;  // about a multiprocessor each
constexpr int32_t kChunkStep = 128;         // chunks begin on cache lines
constexpr int64_t kSplitChunk = 2048;       // pairs that are worth a block on the split path
constexpr int64_t kSplitBlocks = 256;

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
  Plan plan{.path = TY_ALIGN_EVERYWHERE};
  if (problem.num_pairs() <= kMaxRegisterPairs && !has_optional_outputs(problem) && problem.first_id == 0) {
    const int64_t warps = kRegisterThreads / device.warp_size;
    plan.blocks = static_cast<int32_t>(divide_up(std::max<int64_t>(problem.num_pairs(), 1), warps));
  } else {
    const int32_t experts = problem.num_local_experts;
    const auto each = static_cast<int32_t>(divide_up(experts, kEverywhereBlocks));
    plan.owned = each <= 2 ? 2 : std::max(each, 4);
    plan.blocks = static_cast<int32_t>(divide_up(experts, plan.owned));
  }
  return plan;
}

// Whether these tiles are for so many experts.
bool sort_by(const Tiles& tiles, int32_t experts) {
  return experts <= tiles.experts && tiles.wide() == (experts > tuning::kMostHeld);
}

Plan one_launch(const AlignKernels& kernels, const Problem& problem) {
  for (size_t i = 0; i < kernels.tiles.size(); ++i) {
    const Tiles& tiles = kernels.tiles[i];
    if (problem.num_pairs() <= tiles.pairs() && sort_by(tiles, problem.num_local_experts)) {
      return tiles_plan(tiles, static_cast<int32_t>(i + 1), problem);
    }
  }
  return grid_plan(kernels, problem, kernels.grid_blocks);
}

int64_t most_everywhere(const AlignKernels& kernels) {
  const tuning::Block& largest = kernels.everywhere.back();
  return int64_t{largest.threads} * largest.items;
}

// Up to so many pairs everywhere is the first choice: as far as it goes where a workspace costs a memset.
int64_t everywhere_first(const AlignKernels& kernels, const Problem& problem) {
  return problem.once ? most_everywhere(kernels) : kernels.everywhere_pairs;
}

// Everywhere where it is the first choice, and as far as it goes where no list has tiles for the experts.
Plan best_plan(const DeviceProperties& device, const AlignKernels& kernels, const Problem& problem) {
  if (problem.num_pairs() <= everywhere_first(kernels, problem)) return everywhere_plan(device, problem);
  const Plan plan = one_launch(kernels, problem);
  if (plan.tiles == 0 && problem.num_pairs() <= most_everywhere(kernels)) {
    return everywhere_plan(device, problem);
  }
  return plan;
}

// What it launches, in words.
std::string launches(const Plan& plan) {
  switch (plan.path) {
    case TY_ALIGN_EVERYWHERE: {
      const std::string words = text("one launch of ", plan.blocks, " blocks that each read all ids");
      return plan.owned == 0 ? words + " and write an output block a warp"
                             : words + text(" and own ", plan.owned, " experts");
    }
    case TY_ALIGN_GRID: {
      std::string words = text("one cooperative launch of ", plan.blocks, " blocks");
      if (plan.cluster > 1) words += text(" in clusters of ", plan.cluster);
      words += text(", ", plan.chunk, " pairs each");
      return words + (plan.tiles > 0 ? ", a tile" : ", in tiles");
    }
    default:
      return text("two launches of ", plan.blocks, " blocks, ", plan.chunk, " pairs each");
  }
}

}  // namespace

bool has_optional_outputs(const Problem& problem) {
  return problem.counts != nullptr || problem.offsets != nullptr || problem.inverse != nullptr ||
         problem.block_rows != nullptr || problem.num_dropped != nullptr;
}

// Chunks begin on cache lines where that leaves them in a tile.
Plan tiles_plan(const Tiles& tiles, int32_t number, const Problem& problem) {
  const int64_t chunk = std::min<int64_t>(chunk_for(problem.num_pairs(), tiles.blocks), tiles.tile());
  return {.path = TY_ALIGN_GRID,
          .blocks = tiles.blocks,
          .cluster = tiles.cluster,
          .tiles = number,
          .chunk = static_cast<int32_t>(chunk)};
}

Plan grid_plan(const AlignKernels& kernels, const Problem& problem, int32_t blocks) {
  const int32_t step = kernels.grid_step;
  const int64_t tile = int64_t{kernels.grid.threads} * kernels.grid.items;
  const int64_t wanted = divide_up(divide_up(std::max<int64_t>(problem.num_pairs(), 1), tile), step) * step;
  const auto most = static_cast<int32_t>(std::min<int64_t>(wanted, blocks / step * step));
  return {.path = TY_ALIGN_GRID,
          .blocks = most,
          .cluster = kernels.grid_cluster,
          .chunk = chunk_for(problem.num_pairs(), std::max(most, 1))};
}

Plan split_plan(const Problem& problem) {
  const int64_t pairs = problem.num_pairs();
  const auto blocks = std::clamp<int64_t>(divide_up(pairs, kSplitChunk), 1, kSplitBlocks);
  return {.path = TY_ALIGN_SPLIT, .blocks = static_cast<int32_t>(blocks), .chunk = chunk_for(pairs, blocks)};
}

Plan plan(const DeviceProperties& device, const AlignKernels& kernels, const Problem& problem) {
  switch (problem.path) {
    case TY_ALIGN_EVERYWHERE:
      return everywhere_plan(device, problem);
    case TY_ALIGN_GRID:
      return one_launch(kernels, problem);
    case TY_ALIGN_SPLIT:
      return split_plan(problem);
    default:
      break;
  }
  Plan chosen = best_plan(device, kernels, problem);
  chosen.why = Plan::Why::kSize;
  if (chosen.path == TY_ALIGN_GRID && !device.cooperative) {
    chosen = split_plan(problem);
    chosen.why = Plan::Why::kNotCooperative;
  }
  return chosen;
}

std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem) {
  std::string words = path_name(plan.path);
  switch (plan.why) {
    case Plan::Why::kAsked:
      words += ", as asked for: ";
      break;
    case Plan::Why::kSize:
      words += text(": ", problem.num_pairs(), " pairs of ", problem.num_local_experts, " experts on ",
                    device.arch, ": ");
      break;
    case Plan::Why::kNotCooperative:
      words += text(": ", device.name, " has no cooperative launches: ");
      break;
    case Plan::Why::kNotHeld:
      words += text(": ", device.name, " has no room for a block for each tile at once: ");
      break;
  }
  words += launches(plan);
  if (problem.linked) words += device.linked ? ", linked" : text(", not linked: ", device.arch, " cannot");
  return words;
}

size_t workspace_bytes(const Plan& plan, const AlignKernels& kernels, const Problem& problem) {
  // Where a lack of tiles led everywhere, other experts may take tiles: what serves them must be no less.
  const bool needs_none =
      problem.path == TY_ALIGN_EVERYWHERE || problem.num_pairs() <= everywhere_first(kernels, problem);
  if (plan.path == TY_ALIGN_EVERYWHERE && needs_none) return 0;
  const int32_t experts = problem.num_local_experts;
  const int32_t rows = std::max(split_plan(problem).blocks, kernels.grid_blocks / kernels.grid_cluster);
  size_t bytes = Exchange<>::bytes(rows, exchange_columns(experts));
  for (const Tiles& tiles : kernels.tiles) {
    if (!sort_by(tiles, experts) && tiles.experts > experts) continue;  // for more experts alone
    bytes = std::max(bytes, Exchange<>::bytes(tiles.blocks / tiles.cluster, tiles.experts));
  }
  return bytes;
}

}  // namespace tokenyard::align
