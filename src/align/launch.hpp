// From a plan to launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <string>

#include "align/contract.hpp"
#include "align/kernel_everywhere.hpp"
#include "align/kernel_grid.hpp"
#include "align/kernel_registers.hpp"
#include "align/kernel_tile.hpp"
#include "align/plan.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"
#include "tuning/align.hpp"

namespace tokenyard::align {

template <class Port, tuning::AlignGeometry kGeometry>
class Launcher {
 public:
  static AlignOperation operation() { return {workspace_size, run, explain}; }

 private:
  static size_t workspace_size(const DeviceProperties& device, const Problem& problem) {
    const auto rows = rows_for(device);
    return workspace_bytes(plan(device, rows, problem), rows, problem);
  }

  static std::string explain(const DeviceProperties& device, const Problem& problem) {
    return describe(plan(device, rows_for(device), problem), device, problem);
  }

  struct Call {
    const DeviceProperties& device;
    const Problem& problem;
    Workspace workspace;
    Stream stream;
  };

  static Status run(const DeviceProperties& device, const Problem& problem, Workspace workspace,
                    Stream stream) {
    if (device.warp_size != Port::Thread::warp_size) {
      return {TY_UNSUPPORTED,
              text("align: ", device.name, " has warps of ", device.warp_size, " lanes, expected ",
                   Port::Thread::warp_size, ": this build has no kernels for it; use the CPU")};
    }
    const Plan chosen = plan(device, rows_for(device), problem);
    const Call call{device, problem, workspace, stream};
    if (!PlainIds::fit(problem)) return run_path<AnyIds, true>(chosen, call);
    if (has_optional_outputs(problem)) return run_path<PlainIds, true>(chosen, call);
    return run_path<PlainIds, false>(chosen, call);
  }

  template <class Ids, bool kOptional>
  static Status run_path(const Plan& chosen, const Call& call) {
    switch (chosen.path) {
      case TY_ALIGN_EVERYWHERE:
        return run_everywhere<Ids, kOptional>(chosen, call);
      case TY_ALIGN_GRID:
        return run_grid<Ids, kOptional>(chosen, call);
      default:
        return run_split<Ids, kOptional>(chosen, call);
    }
  }

  template <class Ids, bool kOptional>
  static Status run_everywhere(const Plan& chosen, const Call& call) {
    if (chosen.owned == 0) {
      using Kernel = Registers<Ids>;
      static_assert(Kernel::kMaxPairs == kMaxRegisterPairs && Kernel::threads == kRegisterThreads);
      return Port::launch(Kernel{Ids(call.problem), Outputs<false>(call.problem)}, chosen.blocks,
                          call.stream);
    }
    constexpr tuning::Block largest = kGeometry.everywhere[kGeometry.everywhere_blocks - 1];
    if (call.problem.num_pairs() > largest.threads * largest.items) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_EVERYWHERE with ", call.problem.num_pairs(),
                   " pairs, expected at most ", largest.threads * largest.items, ": use TY_ALIGN_AUTO")};
    }
    switch (chosen.owned) {
      case 2:
        return run_everywhere<Ids, kOptional, 2>(chosen, call);
      case 4:
        return run_everywhere<Ids, kOptional, 4>(chosen, call);
      default:
        return run_everywhere<Ids, kOptional, 32>(chosen, call);
    }
  }
  // The smallest of the blocks that hold all pairs.
  template <class Ids, bool kOptional, int kOwned, size_t kBlock = 0>
  static Status run_everywhere(const Plan& chosen, const Call& call) {
    constexpr tuning::Block block = kGeometry.everywhere[kBlock];
    using Kernel = Everywhere<Ids, kOptional, block.threads, block.items, kOwned>;
    if constexpr (kBlock + 1 < kGeometry.everywhere_blocks) {
      if (call.problem.num_pairs() > Kernel::kTile) {
        return run_everywhere<Ids, kOptional, kOwned, kBlock + 1>(chosen, call);
      }
    }
    return Port::launch(Kernel{Ids(call.problem), Outputs<kOptional>(call.problem)}, chosen.blocks,
                        call.stream);
  }

  template <class Ids, bool kOptional, int kPasses, int kCluster, Stage kStage>
  using GridKernel =
      Grid<Ids, true, kGeometry.grid.threads, kGeometry.grid.items, kPasses, kCluster, kStage>;

  static bool one_pass(const Problem& problem) { return problem.num_local_experts <= 256; }

  template <class Ids, bool kOptional>
  static Status run_split(const Plan& chosen, const Call& call) {
    return one_pass(call.problem) ? run_split<Ids, kOptional, 1>(chosen, call)
                                  : run_split<Ids, kOptional, 2>(chosen, call);
  }
  template <class Ids, bool kOptional, int kPasses>
  static Status run_split(const Plan& chosen, const Call& call) {
    TY_RETURN_IF_ERROR(
        (launch_exchanging<GridKernel<Ids, kOptional, kPasses, 1, Stage::kCount>>(chosen, call)));
    return launch_exchanging<GridKernel<Ids, kOptional, kPasses, 1, Stage::kPlace>>(chosen, call);
  }

  template <class Ids, bool kOptional>
  static Status run_grid(const Plan& chosen, const Call& call) {
    Status status = run_clusters<Ids, kOptional>(chosen, call);
    if (status.ok() || call.problem.path != TY_ALIGN_AUTO) return status;
    // The driver will not hold the grid at once (a context that was given part of the device, say).
    return run_split<Ids, kOptional>(split_plan(call.problem), call);
  }
  template <class Ids, bool kOptional>
  static Status run_clusters(const Plan& chosen, const Call& call) {
    if constexpr (Port::has_clusters) {
      if (chosen.cluster == 8) return run_cluster<Ids, kOptional, 8>(chosen, call);
      if (chosen.cluster == 4) return run_cluster<Ids, kOptional, 4>(chosen, call);
    }
    return run_cluster<Ids, kOptional, 1>(chosen, call);
  }
  template <class Ids, bool kOptional, int kCluster>
  static Status run_cluster(const Plan& chosen, const Call& call) {
    const int32_t experts = call.problem.num_local_experts;
    if (experts <= 256) {
      return run_tile<Ids, kOptional, 256, kCluster>(chosen, call, [&] {
        return run_resident<GridKernel<Ids, kOptional, 1, kCluster, Stage::kWhole>>(chosen, call);
      });
    }
    const auto many = [&] {
      return run_resident<GridKernel<Ids, kOptional, 2, kCluster, Stage::kWhole>>(chosen, call);
    };
    if constexpr (kGeometry.tile_experts >= 512) {
      if (experts <= 512) return run_tile<Ids, kOptional, 512, kCluster>(chosen, call, many);
    }
    return many();
  }
  // The smallest of the tiles that hold a chunk, or else many of them.
  template <class Ids, bool kOptional, int kBins, int kCluster, size_t kBlock = 0, class ManyTiles>
  static Status run_tile(const Plan& chosen, const Call& call, ManyTiles many) {
    if constexpr (kBlock == kGeometry.tile_blocks) {
      return many();
    } else {
      constexpr tuning::Block block = kGeometry.tile[kBlock];
      using Kernel = Tile<Ids, kOptional, block.threads, block.items, kBins, kCluster>;
      if (chosen.chunk > Kernel::kTile)
        return run_tile<Ids, kOptional, kBins, kCluster, kBlock + 1>(chosen, call, many);
      return run_resident<Kernel>(chosen, call);
    }
  }

  template <class Kernel>
  static Status run_resident(const Plan& chosen, const Call& call) {
    int resident = 0;
    TY_RETURN_IF_ERROR(Port::template resident_blocks<Kernel>(call.device.multiprocessors, resident));
    if (resident < Kernel::cluster) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_GRID, but ", call.device.name, " cannot hold a cluster of ",
                   Kernel::cluster, " blocks, expected room for one: use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    const Plan fitting = with_blocks(chosen, call.problem, resident);
    const int64_t row_pairs = static_cast<int64_t>(fitting.chunk) * fitting.cluster;
    if (row_pairs > kMaxRowPairs) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_GRID with ", row_pairs, " pairs a cluster on ", call.device.name,
                   ", expected at most ", kMaxRowPairs, ": use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    return launch_exchanging<Kernel>(fitting, call);
  }

  template <class Kernel>
  static Status launch_exchanging(const Plan& chosen, const Call& call) {
    return Port::launch(Kernel(chosen.chunk, chosen.blocks, call.workspace.memory, call.problem),
                        chosen.blocks, call.stream);
  }
};

}  // namespace tokenyard::align
