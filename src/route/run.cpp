#include "route/run.hpp"

#include "gate/run.hpp"
#include "runtime/text.hpp"

namespace tokenyard::route {

size_t workspace_size(const Backend& backend, const DeviceProperties& device, const Problem& problem) {
  return backend.align.workspace_size(device, problem.align);
}

Status run(const Backend& backend, const DeviceProperties& device, const Problem& problem,
           Workspace workspace, Stream stream) {
  if (problem.path == TY_ROUTE_ONE) {
    return {TY_UNSUPPORTED, text("route: path is TY_ROUTE_ONE on ", device.name,
                                 ", expected a device with a kernel for it: use TY_ROUTE_AUTO")};
  }
  TY_RETURN_IF_ERROR(gate::run(backend, device, problem.gate, stream));
  return backend.align.run(device, problem.align, workspace, stream);
}

std::string explain(const Backend& backend, const DeviceProperties& device, const Problem& problem) {
  return text("two: gate, ", backend.gate.explain(device, problem.gate), "; align, ",
              backend.align.explain(device, problem.align));
}

}  // namespace tokenyard::route
