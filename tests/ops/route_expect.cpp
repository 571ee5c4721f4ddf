#include "route_expect.hpp"

#include <gtest/gtest.h>

#include "device.hpp"
#include "gate_expect.hpp"

namespace tokenyard::test {

bool expect_route_right(const std::string& device, const harness::RouteProblem& problem,
                        harness::RouteOptions options) {
  SCOPED_TRACE(problem.shape.command() + " --device " + device);
  const harness::GateOutputs gate =
      gate_outputs(device, problem.gate, {.optional_outputs = options.optional_outputs});
  bool one_offers_it = true;
  for (const ty_route_path path : kRoutePaths) {
    SCOPED_TRACE("ty_route_path " + std::to_string(path));
    options.path = path;
    harness::RouteOutputs got;
    const Status status = harness::run_route(device_id(device), problem, options, got);
    if (path == TY_ROUTE_ONE && status.code() == TY_UNSUPPORTED) {
      one_offers_it = false;
      continue;
    }
    EXPECT_EQ(status.ok() ? harness::difference(problem, got, gate) : status.message(), "");
  }
  return one_offers_it;
}

}  // namespace tokenyard::test
