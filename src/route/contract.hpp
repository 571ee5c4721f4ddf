// route's contract on the host: that of gate, then that of align for gate's ids.
#pragma once

#include "align/contract.hpp"
#include "gate/contract.hpp"
#include "runtime/check.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::route {

// A checked call: what every implementation gets.
struct Problem {
  gate::Problem gate;
  align::Problem align;  // of gate's ids
  ty_route_path path;
};

// Checks `args` (of any version of the structs) and fills `problem`, or says what is wrong with which
// argument of which of the two.
Status check(const ty_route_args* args, Pointers pointers, Problem& problem);

}  // namespace tokenyard::route
