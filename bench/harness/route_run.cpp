#include "harness/route_run.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "harness/as_status.hpp"
#include "harness/synchronize.hpp"

namespace tokenyard::harness {

RouteCall::RouteCall(const RouteShape& shape, ty_route_path path)
    : gate_(gate_args(shape.gate)), align_(align_args(shape.align())) {
  args_.path = path;
  args_.gate = &gate_;
  args_.align = &align_;
}

Status RouteRun::create(ty_device device, const RouteProblem& problem, const RouteOptions& options,
                        std::optional<RouteRun>& run) {
  std::optional<GateRun> gate;
  std::optional<AlignRun> align;
  const AlignShape align_shape = problem.shape.align();
  const std::vector<int64_t> no_ids(static_cast<size_t>(align_shape.tokens * align_shape.top_k), -1);
  TY_RETURN_IF_ERROR(GateRun::create(device, problem.gate,
                                     {.optional_outputs = options.optional_outputs,
                                      .misalignment = options.misalignment,
                                      .stream = options.stream},
                                     gate));
  TY_RETURN_IF_ERROR(AlignRun::create(device, problem.align(no_ids),
                                      {.optional_outputs = options.optional_outputs,
                                       .misalignment = options.misalignment,
                                       .stream = options.stream},
                                      align));
  run = RouteRun(device, options.path, std::move(*gate), std::move(*align));
  return {};
}

Status RouteRun::poison() {
  TY_RETURN_IF_ERROR(gate_.poison());
  return align_.poison();
}

Status RouteRun::set_logits(const std::vector<float>& logits) { return gate_.set_logits(logits); }

ty_route_args RouteRun::args() const {
  ty_route_args args = TY_ROUTE_ARGS_INIT;
  args.path = path_;
  args.gate = &gate_.args();
  args.align = &align_.args();
  return args;
}

Status RouteRun::launch(Stream stream, const RouteRun& inputs) {
  ty_gate_args gate = gate_.args();
  gate.logits = inputs.gate_.args().logits;
  ty_route_args args = this->args();
  args.gate = &gate;
  return as_status(ty_route(device_, &args, align_.workspace(), stream));
}

Status RouteRun::collect(RouteOutputs& outputs) {
  TY_RETURN_IF_ERROR(gate_.collect(outputs.gate));
  return align_.collect(outputs.align);
}

Status run_route(ty_device device, const RouteProblem& problem, const RouteOptions& options,
                 RouteOutputs& outputs) {
  std::optional<RouteRun> run;
  TY_RETURN_IF_ERROR(RouteRun::create(device, problem, options, run));
  TY_RETURN_IF_ERROR(run->launch(options.stream));
  TY_RETURN_IF_ERROR(synchronize(device, options.stream));
  return run->collect(outputs);
}

std::string difference(const RouteProblem& problem, const RouteOutputs& got, const GateOutputs& gate) {
  GateOutputs chosen = gate;
  if (got.gate.counts.empty()) {
    chosen.counts.clear();
    chosen.physical_counts.clear();
  }
  std::string found = difference(got.gate, chosen);
  if (!found.empty()) return found;
  AlignOutputs want = expected(problem.align(got.gate.ids));
  const bool has_optional_outputs = !got.align.offsets.empty();
  return difference(got.align, has_optional_outputs ? want : required_outputs(std::move(want)));
}

}  // namespace tokenyard::harness
