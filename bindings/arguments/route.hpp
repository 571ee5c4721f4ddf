// From gate's and align's arguments to those of route.
#pragma once

#include <string>
#include <utility>

#include "tokenyard/tokenyard.hpp"

namespace tokenyard::binding {

inline ty_route_args arguments(const ty_gate_args& gate, const ty_align_args& align) {
  ty_route_args args = TY_ROUTE_ARGS_INIT;
  args.gate = &gate;
  args.align = &align;
  return args;
}

// What one of the two refuses, route refuses: its sentence begins with the name of the operation that was
// called.
template <class Part>
auto part_of_route(Part&& part) {
  try {
    return std::forward<Part>(part)();
  } catch (const Error& error) {
    throw Error(error.status(), std::string("route: ") + error.what());
  }
}

}  // namespace tokenyard::binding
