// From a plan to launches, for any port. The backends (backend_*.{cu,hip,cpp}) instantiate it.
#pragma once

#include <string>
#include <utility>

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
    return workspace_bytes(plan(device, rows_for(device), problem), problem);
  }

  static std::string explain(const DeviceProperties& device, const Problem& problem) {
    return plan(device, rows_for(device), problem).reason;
  }

  static Status run(const DeviceProperties& device, const Problem& problem, Workspace workspace, Stream stream) {
    const Plan chosen = plan(device, rows_for(device), problem);
    switch (chosen.path) {
      case TY_ALIGN_EVERYWHERE: return run_everywhere(chosen, problem, stream);
      case TY_ALIGN_GRID: return run_grid(device, chosen, problem, workspace, stream);
      default: return run_split(chosen, problem, workspace, stream);
    }
  }

  static Status run_everywhere(const Plan& chosen, const Problem& problem, Stream stream) {
    using Small = Everywhere<kGeometry.everywhere_threads, kGeometry.everywhere_items>;
    using Large = Everywhere<kGeometry.everywhere_large_threads, kGeometry.everywhere_large_items>;
    const Ids ids(problem);
    const Outputs out(problem);
    if (problem.num_pairs() <= Small::kTile) {
      return Port::launch(Small{ids, out, chosen.owned}, chosen.blocks, stream);
    }
    return Port::launch(Large{ids, out, chosen.owned}, chosen.blocks, stream);
  }

  template <int kPasses, int kCluster, Stage kStage>
  using GridKernel = Grid<kGeometry.grid_threads, kGeometry.grid_items, kPasses, kCluster, kStage>;

  template <class Kernel>
  static Status launch_grid(const Plan& chosen, const Problem& problem, Workspace workspace, Stream stream) {
    const Exchange exchange(workspace.memory, chosen.blocks / chosen.cluster, exchange_columns(problem));
    return Port::launch(Kernel{Ids(problem), Outputs(problem), exchange, chosen.chunk}, chosen.blocks, stream);
  }

  static bool one_pass(const Problem& problem) { return problem.num_local_experts <= 256; }

  static Status run_split(const Plan& chosen, const Problem& problem, Workspace workspace, Stream stream) {
    if (one_pass(problem)) return run_split<1>(chosen, problem, workspace, stream);
    return run_split<2>(chosen, problem, workspace, stream);
  }
  template <int kPasses>
  static Status run_split(const Plan& chosen, const Problem& problem, Workspace workspace, Stream stream) {
    TY_RETURN_IF_ERROR((launch_grid<GridKernel<kPasses, 1, Stage::kCount>>(chosen, problem, workspace, stream)));
    return launch_grid<GridKernel<kPasses, 1, Stage::kPlace>>(chosen, problem, workspace, stream);
  }

  static Status run_grid(const DeviceProperties& device, const Plan& chosen, const Problem& problem,
                         Workspace workspace, Stream stream) {
    Status status = one_pass(problem) ? run_grid<1>(device, chosen, problem, workspace, stream)
                                      : run_grid<2>(device, chosen, problem, workspace, stream);
    if (status.ok() || problem.path != TY_ALIGN_AUTO) return status;
    // The driver will not hold the grid at once (a context that was given part of the device, say).
    return run_split(split_plan(problem), problem, workspace, stream);
  }
  template <int kPasses>
  static Status run_grid(const DeviceProperties& device, const Plan& chosen, const Problem& problem,
                         Workspace workspace, Stream stream) {
    if constexpr (Port::has_clusters) {
      if (chosen.cluster == 8) {
        return run_resident<GridKernel<kPasses, 8, Stage::kWhole>>(device, chosen, problem, workspace, stream);
      }
      if (chosen.cluster == 4) {
        return run_resident<GridKernel<kPasses, 4, Stage::kWhole>>(device, chosen, problem, workspace, stream);
      }
    }
    return run_resident<GridKernel<kPasses, 1, Stage::kWhole>>(device, chosen, problem, workspace, stream);
  }

  template <class Kernel>
  static Status run_resident(const DeviceProperties& device, const Plan& chosen, const Problem& problem,
                             Workspace workspace, Stream stream) {
    int resident = 0;
    TY_RETURN_IF_ERROR(Port::template resident_blocks<Kernel>(device.multiprocessors, resident));
    if (resident < Kernel::cluster) {
      return {TY_UNSUPPORTED,
              text("align: path is TY_ALIGN_GRID, but ", device.name, " cannot hold a cluster of ", Kernel::cluster,
                   " blocks, expected room for one: use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    if (resident >= chosen.blocks) return launch_grid<Kernel>(chosen, problem, workspace, stream);
    const Plan smaller = with_blocks(chosen, problem, resident);
    if (static_cast<int64_t>(smaller.chunk) * smaller.cluster > kMaxRowPairs) {
      return {TY_UNSUPPORTED, text("align: path is TY_ALIGN_GRID, but ", smaller.blocks, " resident blocks of ",
                                   device.name, " would have more than ", kMaxRowPairs,
                                   " pairs a cluster: use TY_ALIGN_AUTO or TY_ALIGN_SPLIT")};
    }
    return launch_grid<Kernel>(smaller, problem, workspace, stream);
  }
};

}  // namespace tokenyard::align
