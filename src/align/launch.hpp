// From a plan to launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <type_traits>

#include "align/contract.hpp"
#include "align/kernel_everywhere.hpp"
#include "align/kernel_grid.hpp"
#include "align/kernel_registers.hpp"
#include "align/kernel_tile.hpp"
#include "align/kernel_wide.hpp"
#include "align/plan.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"
#include "tuning/align.hpp"

namespace tokenyard::align {

struct Call {
  const DeviceProperties& device;
  const Problem& problem;
  Workspace workspace;
  Stream stream;
};

// The kernels for one way to give ids, with or without optional outputs.
template <class Port, const tuning::AlignKernels& kKernels, class Ids, bool kOptional>
class Launches {
 public:
  static Status run(const Plan& chosen, const Call& call) {
    switch (chosen.path) {
      case TY_ALIGN_EVERYWHERE:
        return run_everywhere(chosen, call);
      case TY_ALIGN_GRID:
        return run_grid(chosen, call);
      default:
        return run_split(chosen, call);
    }
  }

 private:
  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, const Call& call) {
    return Port::launch(kernel, blocks, call.stream, call.device.linked && call.problem.linked);
  }

  static Status run_everywhere(const Plan& chosen, const Call& call) {
    switch (chosen.owned) {
      case 0:
        return run_registers(chosen, call);
      case 2:
        return run_everywhere<2>(chosen, call);
      case 4:
        return run_everywhere<4>(chosen, call);
      default:
        return run_everywhere<32>(chosen, call);
    }
  }
  static Status run_registers(const Plan& chosen, const Call& call) {
    using Kernel = Registers<Ids>;
    static_assert(Kernel::kMaxPairs == kMaxRegisterPairs && Kernel::threads == kRegisterThreads);
    return launch(Kernel{Ids(call.problem), Outputs<false>(call.problem)}, chosen.blocks, call);
  }
  template <int kOwned, size_t kNumber = 0>
  static Status run_everywhere(const Plan& chosen, const Call& call) {
    if constexpr (kNumber == kKernels.everywhere.size()) {
      return {TY_UNSUPPORTED, text("align: path is TY_ALIGN_EVERYWHERE with ", call.problem.num_pairs(),
                                   " pairs, expected at most ",
                                   kKernels.everywhere.back().threads * kKernels.everywhere.back().items,
                                   ": use TY_ALIGN_AUTO")};
    } else {
      constexpr tuning::Block block = kKernels.everywhere[kNumber];
      using Kernel = Everywhere<Ids, kOptional, block.threads, block.items, kOwned>;
      if (call.problem.num_pairs() > Kernel::kTile) return run_everywhere<kOwned, kNumber + 1>(chosen, call);
      return launch(Kernel{Ids(call.problem), Outputs<kOptional>(call.problem)}, chosen.blocks, call);
    }
  }

  static Status run_grid(const Plan& chosen, const Call& call) {
    Status status = run_in_one(chosen, call);
    if (status.ok() || call.problem.path != TY_ALIGN_AUTO) return status;
    // The driver will not hold the grid at once (a context that was given part of the device, say).
    return run_split(split_plan(call.problem), call);
  }
  // A tile a block if the device holds so many, or else as many tiles as it takes.
  static Status run_in_one(const Plan& chosen, const Call& call) {
    if (chosen.tiles > 0) {
      bool fits = false;
      const Status status = run_tiles(chosen, call, fits);
      if (fits) return status;
    }
    return run_many_tiles(call);
  }

  template <bool kWide, int... kSizes>
  using TilesKernel =
      std::conditional_t<kWide, Wide<Ids, kOptional, kSizes...>, Tile<Ids, kOptional, kSizes...>>;

  template <size_t kNumber = 0>
  static Status run_tiles(const Plan& chosen, const Call& call, bool& fits) {
    if constexpr (kNumber == kKernels.tiles.size()) {
      return {};
    } else {
      if (chosen.tiles != kNumber + 1) return run_tiles<kNumber + 1>(chosen, call, fits);
      constexpr tuning::Tiles tiles = kKernels.tiles[kNumber];
      using Kernel = TilesKernel<tiles.wide(), tiles.threads, tiles.sorters, tiles.items, tiles.experts,
                                 tiles.cluster, tiles.blocks / tiles.cluster>;
      int resident = 0;
      TY_RETURN_IF_ERROR(Port::template resident_blocks<Kernel>(call.device.multiprocessors, resident));
      fits = tiles.blocks <= resident;
      return fits ? launch_exchanging<Kernel>(chosen, call) : Status();
    }
  }

  // More than 256 experts are sorted in two passes.
  template <int kPasses, int kCluster, Stage kStage>
  using GridKernel = Grid<Ids, kKernels.grid.threads, kKernels.grid.items, kPasses, kCluster, kStage>;
  static bool one_pass(const Call& call) { return call.problem.num_local_experts <= 256; }

  static Status run_many_tiles(const Call& call) {
    constexpr int kCluster = kKernels.grid_cluster;
    return one_pass(call) ? run_resident<GridKernel<1, kCluster, Stage::kWhole>>(call)
                          : run_resident<GridKernel<2, kCluster, Stage::kWhole>>(call);
  }
  template <class Kernel>
  static Status run_resident(const Call& call) {
    int resident = 0;
    TY_RETURN_IF_ERROR(Port::template resident_blocks<Kernel>(call.device.multiprocessors, resident));
    const Plan fitting = grid_plan(kKernels, call.problem, std::min(resident, kKernels.grid_blocks));
    if (fitting.blocks == 0) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_GRID, but ", call.device.name, " cannot hold a cluster of ",
                   Kernel::cluster, " blocks, expected room for one: use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    return launch_exchanging<Kernel>(fitting, call);
  }

  static Status run_split(const Plan& chosen, const Call& call) {
    return one_pass(call) ? run_split<1>(chosen, call) : run_split<2>(chosen, call);
  }
  template <int kPasses>
  static Status run_split(const Plan& chosen, const Call& call) {
    TY_RETURN_IF_ERROR((launch_exchanging<GridKernel<kPasses, 1, Stage::kCount>>(chosen, call)));
    return launch_exchanging<GridKernel<kPasses, 1, Stage::kPlace>>(chosen, call);
  }

  template <class Kernel>
  static Status launch_exchanging(const Plan& chosen, const Call& call) {
    return launch(Kernel(chosen.chunk, chosen.blocks, call.workspace, call.problem), chosen.blocks, call);
  }
};

// align on a port whose devices all take the same kernels.
template <class Port, const tuning::AlignKernels& kKernels>
struct Launcher {
  static size_t workspace_size(const DeviceProperties& device, const Problem& problem) {
    return workspace_bytes(plan(device, kKernels, problem), kKernels, problem);
  }

  static std::string explain(const DeviceProperties& device, const Problem& problem) {
    return describe(plan(device, kKernels, problem), device, problem);
  }

  static Status run(const DeviceProperties& device, const Problem& problem, Workspace workspace,
                    Stream stream) {
    if (device.warp_size != Port::Thread::warp_size) {
      return {TY_UNSUPPORTED,
              text("align: ", device.name, " has warps of ", device.warp_size, " lanes, expected ",
                   Port::Thread::warp_size, ": this build has no kernels for it; use the CPU")};
    }
    const Plan chosen = plan(device, kKernels, problem);
    const Call call{device, problem, workspace, stream};
    if (!PlainIds::fit(problem)) return Launches<Port, kKernels, AnyIds, true>::run(chosen, call);
    if (has_optional_outputs(problem)) return Launches<Port, kKernels, PlainIds, true>::run(chosen, call);
    return Launches<Port, kKernels, PlainIds, false>::run(chosen, call);
  }

  static AlignOperation operation() { return {workspace_size, run, explain}; }
};

}  // namespace tokenyard::align
