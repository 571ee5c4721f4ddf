// What every test of route says in the end.
#pragma once

#include <string>
#include <vector>

#include "harness/route_run.hpp"

namespace tokenyard::test {

// The paths that a device may take, in one launch and in two, and its own choice.
inline const std::vector<ty_route_path> kRoutePaths{TY_ROUTE_AUTO, TY_ROUTE_ONE, TY_ROUTE_TWO};

// Runs the problem on the device, on each path that offers it, and expects what gate and then align give.
// Returns whether one launch offered it.
bool expect_route_right(const std::string& device, const harness::RouteProblem& problem,
                        harness::RouteOptions options = {});

}  // namespace tokenyard::test
