// Candidates for align on devices with clusters: int32 ids, the required outputs.
#include <array>
#include <utility>

#include "align/exchange.hpp"
#include "align/kernel_everywhere.hpp"
#include "align/kernel_tile.hpp"
#include "align/plan.hpp"
#include "candidates/candidates.hpp"
#include "port/cuda.hpp"
#include "port/cuda_runtime.hpp"
#include "runtime/text.hpp"
#include "tuning/align.hpp"

namespace tokenyard::candidates {
namespace {

using align::Outputs;
using align::Plan;
using align::Problem;
using baselines::Baseline;
using port::cuda::Port;
using tuning::Tiles;

// Everywhere: threads, pairs of each, experts that a block owns.
struct Everywhere {
  int threads, items, owned;
};
constexpr Everywhere kEverywhere[] = {
    {128, 1, 2}, {256, 1, 2}, {512, 1, 2},  {128, 4, 2},  {256, 4, 2}, {512, 4, 2}, {1024, 4, 2},
    {256, 8, 2}, {512, 8, 2}, {1024, 8, 2}, {512, 16, 2}, {256, 4, 4}, {512, 4, 4}, {512, 8, 4},
};

constexpr Tiles kTiles[] = {
    {8, 1, 512, 256, 4, 256},    {8, 1, 768, 512, 4, 256},     {8, 1, 1024, 256, 4, 256},
    {16, 1, 512, 256, 4, 256},   {16, 1, 512, 512, 4, 256},    {16, 1, 384, 128, 4, 256},
    {32, 4, 512, 256, 4, 256},   {32, 4, 512, 512, 4, 256},    {32, 8, 512, 256, 4, 256},
    {32, 8, 768, 512, 4, 256},   {64, 8, 512, 256, 4, 256},    {64, 8, 640, 384, 4, 256},
    {64, 8, 768, 512, 4, 256},   {64, 8, 512, 512, 4, 256},    {64, 8, 512, 256, 8, 256},
    {64, 4, 768, 512, 4, 256},   {64, 8, 1024, 768, 8, 256},   {120, 8, 512, 256, 4, 256},
    {120, 8, 640, 384, 4, 256},  {120, 8, 768, 512, 4, 256},   {120, 8, 896, 640, 4, 256},
    {120, 8, 768, 768, 4, 256},  {120, 8, 1024, 768, 8, 256},  {120, 8, 896, 640, 8, 256},
    {120, 8, 832, 576, 8, 256},  {120, 8, 768, 512, 12, 256},  {120, 8, 640, 384, 12, 256},
    {16, 1, 768, 256, 4, 512},   {16, 1, 512, 512, 4, 512},    {32, 4, 768, 256, 4, 512},
    {64, 8, 768, 256, 4, 512},   {64, 8, 1024, 512, 4, 512},   {120, 8, 768, 256, 4, 512},
    {120, 8, 1024, 512, 4, 512}, {120, 8, 1024, 512, 12, 512},
};

// Kernels of a type of their own: the library has those of its lists, under the same names.
struct PlainIds : align::PlainIds {
  using align::PlainIds::PlainIds;
};

Problem problem_of(const ty_align_args& args) {
  Problem problem{};
  (void)align::check(&args, Pointers::kMayBeNull, problem);
  return problem;
}

template <int kNumber>
Baseline everywhere() {
  static constexpr Everywhere kOf = kEverywhere[kNumber];
  using Kernel = align::Everywhere<PlainIds, false, kOf.threads, kOf.items, kOf.owned>;
  return {.name = text("everywhere ", kOf.threads, " x ", kOf.items, ", ", kOf.owned, " owned"),
          .stable = true,
          .takes =
              [](const ty_align_args& args) {
                const int64_t pairs = args.num_tokens * args.top_k;
                return pairs <= Kernel::kTile && 16 * pairs > Kernel::kTile &&
                       args.num_experts <= 256 * kOf.owned;
              },
          .workspace_bytes = [](const ty_align_args&) { return size_t{0}; },
          .prepare = nullptr,
          .run =
              [](const ty_align_args& args, Workspace, Stream stream) {
                const Problem problem = problem_of(args);
                const int blocks = (problem.num_experts + kOf.owned - 1) / kOf.owned;
                return Port::launch(Kernel{PlainIds(problem), Outputs<false>(problem), kOf.owned}, blocks,
                                    stream);
              }};
}

template <int kNumber>
Baseline tiles() {
  static constexpr Tiles kOf = kTiles[kNumber];
  using Kernel = align::Tile<PlainIds, false, kOf.threads, kOf.sorters, kOf.items, kOf.experts, kOf.cluster,
                             kOf.blocks / kOf.cluster>;
  return {.name = text("tiles ", kOf.blocks, "/", kOf.cluster, ", ", kOf.threads, " threads, ", kOf.sorters,
                       " x ", kOf.items, ", ", kOf.experts, " experts"),
          .stable = true,
          .takes =
              [](const ty_align_args& args) {
                const int64_t pairs = args.num_tokens * args.top_k;
                return pairs <= kOf.pairs() && 4 * pairs > kOf.pairs() && args.num_experts <= kOf.experts;
              },
          .workspace_bytes =
              [](const ty_align_args&) {
                return align::Exchange<>::bytes(kOf.blocks / kOf.cluster, kOf.experts);
              },
          .prepare =
              [](const ty_align_args&, Workspace workspace, Stream stream) {
                return port::cuda::runtime().fill(workspace.memory, 0, workspace.bytes, stream);
              },
          .run =
              [](const ty_align_args& args, Workspace workspace, Stream stream) {
                const Problem problem = problem_of(args);
                const Plan plan = align::tiles_plan(kOf, 1, problem);
                return Port::launch(Kernel(plan.chunk, plan.blocks, workspace, problem), plan.blocks, stream);
              }};
}

}  // namespace

std::vector<Baseline> align() {
  std::vector<Baseline> all;
  [&]<size_t... kNumber>(std::index_sequence<kNumber...>) {
    (all.push_back(everywhere<kNumber>()), ...);
  }(std::make_index_sequence<std::size(kEverywhere)>());
  [&]<size_t... kNumber>(std::index_sequence<kNumber...>) {
    (all.push_back(tiles<kNumber>()), ...);
  }(std::make_index_sequence<std::size(kTiles)>());
  return all;
}

}  // namespace tokenyard::candidates
