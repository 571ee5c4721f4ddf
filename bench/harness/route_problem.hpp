// Problems for route: one for gate, and what align is to make of its ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/gate_problem.hpp"
#include "harness/problem.hpp"

namespace tokenyard::harness {

struct RouteShape {
  GateShape gate;
  int32_t block = 128;
  int32_t local_experts = 0;    // > 0: with an expert_map
  bool several_on_one = false;  // of the map: several experts on a local one, and entries that are none
  int64_t extra_capacity = 0;   // slots beyond ty_align_capacity(); may be negative, but the minimum stays

  AlignShape align() const;     // of what align does
  std::string command() const;  // "tokenyard verify route --tokens … --seed …", which runs it again
};

struct RouteProblem {
  RouteShape shape;
  GateProblem gate;
  std::vector<int32_t> expert_map;  // [physical and shared experts], empty without a map

  AlignProblem align(std::vector<int64_t> ids) const;  // what there is to sort if these are gate's ids
};

RouteProblem draw(const RouteShape& shape);

// A random shape for verify: every option of the two operations is taken now and then, and what one launch is
// made for half of the time.
RouteShape draw_route_shape(uint64_t seed, int64_t max_logits);

}  // namespace tokenyard::harness
