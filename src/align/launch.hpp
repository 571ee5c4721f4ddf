// From a plan to launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <string>

#include "align/contract.hpp"
#include "align/kernel_everywhere.hpp"
#include "align/kernel_grid.hpp"
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
    if (PlainIds::fit(problem)) return run_path<PlainIds>(chosen, call);
    return run_path<AnyIds>(chosen, call);
  }

  template <class Ids>
  static Status run_path(const Plan& chosen, const Call& call) {
    switch (chosen.path) {
      case TY_ALIGN_EVERYWHERE:
        return run_everywhere<Ids>(chosen, call);
      case TY_ALIGN_GRID:
        return run_grid<Ids>(chosen, call);
      default:
        return run_split<Ids>(chosen, call);
    }
  }

  template <class Ids>
  static Status run_everywhere(const Plan& chosen, const Call& call) {
    using Small = Everywhere<Ids, kGeometry.everywhere_threads, kGeometry.everywhere_items, false>;
    using Large = Everywhere<Ids, kGeometry.everywhere_large_threads, kGeometry.everywhere_large_items, true>;
    static_assert(kMaxOwned == Small::kMaxOwned && kMaxOwned == Large::kMaxOwned);
    const Ids ids(call.problem);
    const Outputs out(call.problem);
    if (call.problem.num_pairs() <= Small::kTile) {
      return Port::launch(Small{chosen.owned, ids, out}, chosen.blocks, call.stream);
    }
    return Port::launch(Large{chosen.owned, ids, out}, chosen.blocks, call.stream);
  }

  template <class Ids, int kPasses, int kCluster, Stage kStage>
  using GridKernel =
      Grid<Ids, kGeometry.grid_threads, kGeometry.grid_large_items, true, kPasses, kCluster, kStage>;
  template <class Ids, int kPasses, int kCluster>
  using SmallGridKernel =
      Grid<Ids, kGeometry.grid_threads, kGeometry.grid_items, false, kPasses, kCluster, Stage::kWhole>;

  static bool one_pass(const Problem& problem) { return problem.num_local_experts <= 256; }

  template <class Ids>
  static Status run_split(const Plan& chosen, const Call& call) {
    return one_pass(call.problem) ? run_split<Ids, 1>(chosen, call) : run_split<Ids, 2>(chosen, call);
  }
  template <class Ids, int kPasses>
  static Status run_split(const Plan& chosen, const Call& call) {
    TY_RETURN_IF_ERROR((launch_grid<Ids, GridKernel<Ids, kPasses, 1, Stage::kCount>>(chosen, call)));
    return launch_grid<Ids, GridKernel<Ids, kPasses, 1, Stage::kPlace>>(chosen, call);
  }

  template <class Ids>
  static Status run_grid(const Plan& chosen, const Call& call) {
    Status status = one_pass(call.problem) ? run_grid<Ids, 1>(chosen, call) : run_grid<Ids, 2>(chosen, call);
    if (status.ok() || call.problem.path != TY_ALIGN_AUTO) return status;
    // The driver will not hold the grid at once (a context that was given part of the device, say).
    return run_split<Ids>(split_plan(call.problem), call);
  }
  template <class Ids, int kPasses>
  static Status run_grid(const Plan& chosen, const Call& call) {
    if constexpr (Port::has_clusters) {
      if (chosen.cluster == 8) return run_cluster<Ids, kPasses, 8>(chosen, call);
      if (chosen.cluster == 4) return run_cluster<Ids, kPasses, 4>(chosen, call);
    }
    return run_cluster<Ids, kPasses, 1>(chosen, call);
  }
  template <class Ids, int kPasses, int kCluster>
  static Status run_cluster(const Plan& chosen, const Call& call) {
    if (chosen.chunk <= SmallGridKernel<Ids, kPasses, kCluster>::kTile) {
      return run_resident<Ids, SmallGridKernel<Ids, kPasses, kCluster>>(chosen, call);
    }
    return run_resident<Ids, GridKernel<Ids, kPasses, kCluster, Stage::kWhole>>(chosen, call);
  }

  template <class Ids, class Kernel>
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
    return launch_grid<Ids, Kernel>(fitting, call);
  }

  template <class Ids, class Kernel>
  static Status launch_grid(const Plan& chosen, const Call& call) {
    const Exchange exchange(call.workspace.memory, chosen.blocks / chosen.cluster,
                            exchange_columns(call.problem));
    return Port::launch(
        Kernel{chosen.chunk, FastDivide(chosen.blocks), Ids(call.problem), exchange, Outputs(call.problem)},
        chosen.blocks, call.stream);
  }
};

}  // namespace tokenyard::align
