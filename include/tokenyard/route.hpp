// route for C++20, over the C ABI: gate and align in one call. See gate.hpp and tokenyard.hpp for their
// arguments.
//
//   tokenyard::GateArgs gate(logits, TY_BFLOAT16, num_tokens, *tokenyard::find_gate_preset("deepseek-v3"));
//   ...                                                          // what gate needs: bias, ids, weights
//   tokenyard::RouteArgs args(gate, /*block_size=*/128);
//   args.align.sorted_pair_ids = allocate(args.align.capacity);   // device pointers, as for align
//   args.align.block_expert = allocate(args.align.num_blocks());
//   args.align.num_padded = allocate(1);
//   size_t bytes = tokenyard::route_workspace_size(device, args);
//   tokenyard::Workspace workspace(device, allocate(bytes), bytes, stream);
//   tokenyard::route(device, args, workspace, stream);
//
// In host memory, gate() and then align() of its ids is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tokenyard/gate.hpp"
#include "tokenyard/tokenyard.h"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard {
inline namespace v0 {

// The arguments of route: gate's, and align's outputs. What align is to sort follows from gate's arguments as
// they are given here: shared experts and replicas must be set in them already.
struct RouteArgs {
  RouteArgs(const GateArgs& gate, int32_t block_size)
      : gate(gate),
        align(static_cast<const int32_t*>(gate.ids), gate.num_tokens, gate.columns(), gate.id_bound(),
              block_size) {}

  // The C ABI's struct; valid as long as this one is where it is.
  ty_route_args c_args() const {
    ty_route_args args = TY_ROUTE_ARGS_INIT;
    args.path = path;
    args.gate = &gate;
    args.align = &align;
    return args;
  }

  GateArgs gate;
  AlignArgs align;
  ty_route_path path = TY_ROUTE_AUTO;
};

inline size_t route_workspace_size(Device device, const RouteArgs& args) {
  const ty_route_args c_args = args.c_args();
  size_t bytes = 0;
  check(ty_route_workspace_size(device, &c_args, &bytes));
  return bytes;
}

inline void route(Device device, const RouteArgs& args, const Workspace& workspace, void* stream) {
  const ty_route_args c_args = args.c_args();
  check(ty_route(device, &c_args, workspace.get(), stream));
}

// In memory of the call's own: see ty_route_once().
inline size_t route_once_size(Device device, const RouteArgs& args) {
  const ty_route_args c_args = args.c_args();
  size_t bytes = 0;
  check(ty_route_once_size(device, &c_args, &bytes));
  return bytes;
}

inline void route_once(Device device, const RouteArgs& args, void* memory, size_t bytes, void* stream) {
  const ty_route_args c_args = args.c_args();
  check(ty_route_once(device, &c_args, memory, bytes, stream));
}

inline std::string route_explain(Device device, const RouteArgs& args) {
  const ty_route_args c_args = args.c_args();
  char line[1024];
  check(ty_route_explain(device, &c_args, line, sizeof line));
  return line;
}

}  // namespace v0
}  // namespace tokenyard
