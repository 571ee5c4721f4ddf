#include "route/run.hpp"

#include "gate/run.hpp"
#include "route/plan.hpp"
#include "runtime/text.hpp"

namespace tokenyard::route {

size_t workspace_size(const Backend& backend, const DeviceProperties& device, const Problem& problem) {
  return backend.align.workspace_size(device, problem.align);
}

Status run(const Backend& backend, const DeviceProperties& device, const Problem& problem,
           Workspace workspace, Stream stream) {
  const Plan chosen = plan(device, backend.route.launches, problem);
  if (chosen.launch > 0) {
    const Status status = backend.route.run(chosen.launch, problem, stream);
    // The driver may not have room for a cluster (in a context that was given part of the device, say).
    if (status.ok() || problem.path == TY_ROUTE_ONE) return status;
  } else if (problem.path == TY_ROUTE_ONE) {
    return {TY_UNSUPPORTED, text("route: path is TY_ROUTE_ONE on ", device.name,
                                 ", expected what one launch takes (", chosen.why, "): use TY_ROUTE_AUTO")};
  }
  TY_RETURN_IF_ERROR(gate::run(backend, device, problem.gate, stream));
  align::Problem order = problem.align;
  order.linked = problem.gate.num_tokens > 0;  // else gate launches nothing
  return backend.align.run(device, order, workspace, stream);
}

std::string explain(const Backend& backend, const DeviceProperties& device, const Problem& problem) {
  const Plan chosen = plan(device, backend.route.launches, problem);
  if (chosen.launch > 0) return "one: " + chosen.why;
  return text("two: ", chosen.why, ": gate, ", backend.gate.explain(device, problem.gate), "; align, ",
              backend.align.explain(device, problem.align));
}

}  // namespace tokenyard::route
