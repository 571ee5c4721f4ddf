// align on CUDA.
#include "align/launch.hpp"
#include "port/cuda.hpp"
#include "port/cuda_runtime.hpp"
#include "runtime/backend.hpp"
#include "tuning/align.hpp"

namespace tokenyard {
namespace {

using Hopper = align::Launcher<port::cuda::Port, tuning::kHopper>;  // and what came after it
using Ampere = align::Launcher<port::cuda::Port, tuning::kAmpere>;

bool has_clusters(const DeviceProperties& device) { return device.max_cluster > 1; }

size_t workspace_size(const DeviceProperties& device, const align::Problem& problem) {
  return has_clusters(device) ? Hopper::workspace_size(device, problem)
                              : Ampere::workspace_size(device, problem);
}
std::string explain(const DeviceProperties& device, const align::Problem& problem) {
  return has_clusters(device) ? Hopper::explain(device, problem) : Ampere::explain(device, problem);
}
Status run(const DeviceProperties& device, const align::Problem& problem, Workspace workspace,
           Stream stream) {
  return has_clusters(device) ? Hopper::run(device, problem, workspace, stream)
                              : Ampere::run(device, problem, workspace, stream);
}

}  // namespace

const Backend& cuda_backend() {
  static const Backend backend{TY_CUDA, "cuda", &port::cuda::runtime(), {workspace_size, run, explain}};
  return backend;
}

}  // namespace tokenyard
