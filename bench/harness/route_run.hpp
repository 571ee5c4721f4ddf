// Runs route on a device through the C ABI, in the buffers of a run of gate and of one of align, and checks
// what came out against these two operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/align_run.hpp"
#include "harness/gate_run.hpp"
#include "harness/route_problem.hpp"
#include "runtime/runtime.hpp"
#include "runtime/status.hpp"

namespace tokenyard::harness {

struct RouteOutputs {
  GateOutputs gate;
  AlignOutputs align;
};

struct RouteOptions {
  ty_route_path path = TY_ROUTE_AUTO;
  bool optional_outputs = true;  // of both operations
  int misalignment = 0;          // elements by which every buffer is moved off its 256-byte alignment
  Stream stream = nullptr;       // fills memory: see AlignOptions
};

class RouteRun {
 public:
  static Status create(ty_device device, const RouteProblem& problem, const RouteOptions& options,
                       std::optional<RouteRun>& run);

  Status poison();                                                // outputs and guards
  Status set_logits(const std::vector<float>& logits);            // others of the same shape, in place
  Status launch(Stream stream) { return launch(stream, *this); }  // enqueues ty_route
  Status launch(Stream stream, const RouteRun& inputs);  // with the logits of another one of the same shape
  Status collect(RouteOutputs& outputs);                 // after a synchronise; also checks the guards

  ty_route_args args() const;  // of this run; valid as long as it is where it is

 private:
  RouteRun(ty_device device, ty_route_path path, GateRun gate, AlignRun align)
      : device_(device), path_(path), gate_(std::move(gate)), align_(std::move(align)) {}

  ty_device device_;
  ty_route_path path_;
  GateRun gate_;
  AlignRun align_;  // with ids of its own, which nobody reads
};

// The call that a shape makes, without memory.
class RouteCall {
 public:
  RouteCall(const RouteShape& shape, ty_route_path path);
  RouteCall(const RouteCall&) = delete;
  RouteCall& operator=(const RouteCall&) = delete;

  const ty_route_args& args() const { return args_; }

 private:
  ty_gate_args gate_;
  ty_align_args align_;
  ty_route_args args_ = TY_ROUTE_ARGS_INIT;
};

// All of it: create, launch, wait, collect.
Status run_route(ty_device device, const RouteProblem& problem, const RouteOptions& options,
                 RouteOutputs& outputs);

// "" if ids and weights are those of ty_gate on the same device, to the last bit, and the order is what
// align's sequential reference says for these ids; else the first difference.
std::string difference(const RouteProblem& problem, const RouteOutputs& got, const GateOutputs& gate);

}  // namespace tokenyard::harness
