// From a plan to launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <algorithm>
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
  // The plan, if the current device holds its blocks at once, or else the next best: as many tiles as it
  // takes, in fewer blocks (none, if it does not hold a cluster).
  static Plan held(const Plan& chosen, const DeviceProperties& device, const Problem& problem) {
    if (chosen.path != TY_ALIGN_GRID) return chosen;
    int resident = 0;
    const auto count = [&]<class Kernel>() {
      return Port::template resident_blocks<Kernel>(device.multiprocessors, resident);
    };
    if (chosen.tiles > 0 && with_tiles(chosen.tiles, count).ok() && chosen.blocks <= resident) return chosen;
    if (!with_many_tiles(problem, count).ok()) resident = 0;
    Plan fitting = grid_plan(kKernels, problem, std::min(resident, kKernels.grid_blocks));
    fitting.why = chosen.tiles == 0 ? chosen.why : Plan::Why::kNotHeld;
    return fitting;
  }

  static Status run(const Plan& chosen, const Call& call) {
    switch (chosen.path) {
      case TY_ALIGN_EVERYWHERE:
        return run_everywhere(chosen, call);
      case TY_ALIGN_GRID:
        return run_grid(held(chosen, call.device, call.problem), call);
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
        return call.problem.num_pairs() <= call.problem.block_size ? run_registers<true>(chosen, call)
                                                                   : run_registers<false>(chosen, call);
      case 2:
        return run_everywhere<2>(chosen, call);
      case 4:
        return run_everywhere<4>(chosen, call);
      default:
        return run_everywhere<32>(chosen, call);
    }
  }
  template <bool kOneBlock>
  static Status run_registers(const Plan& chosen, const Call& call) {
    using Kernel = Registers<Ids, kOneBlock>;
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
      return launch(Kernel{Ids(call.problem), Outputs<kOptional>(call.problem), chosen.owned}, chosen.blocks,
                    call);
    }
  }

  static Status run_grid(const Plan& held, const Call& call) {
    Status status = held.tiles > 0 ? run_tiles(held, call) : run_many_tiles(held, call);
    if (status.ok() || call.problem.path != TY_ALIGN_AUTO) return status;
    // The driver will not hold the grid at once (a context that was given part of the device, say).
    return run_split(split_plan(call.problem), call);
  }

  template <bool kWide, int... kSizes>
  using TilesKernel =
      std::conditional_t<kWide, Wide<Ids, kOptional, kSizes...>, Tile<Ids, kOptional, kSizes...>>;

  // Calls use.operator()<Kernel>() for the kernel of a list's tiles, by its number from 1.
  template <size_t kNumber = 0, class Use>
  static Status with_tiles(int32_t number, const Use& use) {
    if constexpr (kNumber == kKernels.tiles.size()) {
      return {};
    } else {
      if (number != kNumber + 1) return with_tiles<kNumber + 1>(number, use);
      constexpr tuning::Tiles tiles = kKernels.tiles[kNumber];
      return use
          .template operator()<TilesKernel<tiles.wide(), tiles.threads, tiles.sorters, tiles.items,
                                           tiles.experts, tiles.cluster, tiles.blocks / tiles.cluster>>();
    }
  }
  static Status run_tiles(const Plan& chosen, const Call& call) {
    return with_tiles(chosen.tiles, [&]<class Kernel>() { return launch_exchanging<Kernel>(chosen, call); });
  }

  // More than 256 experts are sorted in two passes.
  template <int kPasses, int kCluster, Stage kStage>
  using GridKernel = Grid<Ids, kKernels.grid.threads, kKernels.grid.items, kPasses, kCluster, kStage>;
  static bool one_pass(const Problem& problem) { return problem.num_local_experts <= 256; }

  // Likewise for the kernel that takes as many tiles as it takes.
  template <class Use>
  static Status with_many_tiles(const Problem& problem, const Use& use) {
    constexpr int kCluster = kKernels.grid_cluster;
    return one_pass(problem) ? use.template operator()<GridKernel<1, kCluster, Stage::kWhole>>()
                             : use.template operator()<GridKernel<2, kCluster, Stage::kWhole>>();
  }
  static Status run_many_tiles(const Plan& held, const Call& call) {
    if (held.blocks == 0) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_GRID, but ", call.device.name, " cannot hold a cluster of ",
                   held.cluster, " blocks, expected room for one: use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    return with_many_tiles(call.problem,
                           [&]<class Kernel>() { return launch_exchanging<Kernel>(held, call); });
  }

  static Status run_split(const Plan& chosen, const Call& call) {
    return one_pass(call.problem) ? run_split<1>(chosen, call) : run_split<2>(chosen, call);
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
class Launcher {
 public:
  static size_t workspace_size(const DeviceProperties& device, const Problem& problem) {
    return workspace_bytes(plan(device, kKernels, problem), kKernels, problem);
  }

  // On the current device.
  static std::string explain(const DeviceProperties& device, const Problem& problem) {
    const Plan chosen = plan(device, kKernels, problem);
    return with_launches(problem, [&]<class Chosen>() {
      Plan held = Chosen::held(chosen, device, problem);
      if (held.blocks == 0 && problem.path == TY_ALIGN_AUTO) {
        held = split_plan(problem);
        held.why = Plan::Why::kNotHeld;
      }
      return describe(held, device, problem);
    });
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
    return with_launches(problem, [&]<class Chosen>() { return Chosen::run(chosen, call); });
  }

  static AlignOperation operation() { return {workspace_size, run, explain}; }

 private:
  // Calls use.operator()<Launches>() for the kernels that a problem takes.
  template <class Use>
  static auto with_launches(const Problem& problem, const Use& use) {
    if (!PlainIds::fit(problem)) return use.template operator()<Launches<Port, kKernels, AnyIds, true>>();
    if (has_optional_outputs(problem))
      return use.template operator()<Launches<Port, kKernels, PlainIds, true>>();
    return use.template operator()<Launches<Port, kKernels, PlainIds, false>>();
  }
};

}  // namespace tokenyard::align
