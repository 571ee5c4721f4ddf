// Promises of route beyond one right result.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "device.hpp"
#include "gate_expect.hpp"
#include "harness/route_run.hpp"
#include "route_expect.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {
namespace {

using harness::GateProblem;
using harness::RouteOutputs;
using harness::RouteProblem;
using harness::RouteRun;
using harness::RouteShape;

class RoutePromises : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { TY_SKIP_IF_MISSING(device); }

  const std::string device = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Route, RoutePromises, testing::ValuesIn(kRealDevices),
                         [](const auto& info) { return info.param; });

const RouteShape kDeepSeek{.gate = deepseek_v3(40), .block = 16};

// Nothing is kept from one call to the next.
TEST_P(RoutePromises, OtherLogitsThroughTheSameBuffers) {
  std::optional<RouteRun> run;
  require(RouteRun::create(device_id(device), harness::draw(kDeepSeek), {.optional_outputs = false}, run));
  for (const auto kind : {harness::Logits::kNormal, harness::Logits::kEqual, harness::Logits::kNan,
                          harness::Logits::kAscending}) {
    RouteShape other = kDeepSeek;
    other.gate.logits = kind;
    RouteProblem problem = harness::draw(kDeepSeek);
    problem.gate.logits = harness::draw(other).gate.logits;
    require(run->set_logits(problem.gate.logits));
    require(run->poison());
    require(run->launch(nullptr));
    require(find_backend(device)->runtime->synchronize(nullptr));
    RouteOutputs got;
    require(run->collect(got));
    EXPECT_EQ(harness::difference(problem, got, gate_outputs(device, problem.gate)), "");
  }
}

TEST_P(RoutePromises, NoTokensAndOnlyPadding) {
  RouteShape shape = kDeepSeek;
  shape.gate.tokens = 0;
  expect_route_right(device, harness::draw(shape));
  shape.gate.tokens = shape.gate.padding = 5;
  expect_route_right(device, harness::draw(shape));
}

// Replicas and shared experts are sorted under the ids that gate writes.
TEST_P(RoutePromises, PhysicalAndSharedExpertsWithAMapOfThem) {
  RouteShape shape = kDeepSeek;
  shape.gate.tokens = 7;
  shape.gate.replicas = 2;
  shape.gate.shared = 2;
  shape.gate.padding = 2;
  shape.gate.int64_ids = true;
  expect_route_right(device, harness::draw(shape));
  shape.local_experts = 100;
  expect_route_right(device, harness::draw(shape));
  shape.several_on_one = true;
  expect_route_right(device, harness::draw(shape));
}

// What route needs is what its parts need.
TEST_P(RoutePromises, TheWorkspaceIsAligns) {
  for (const int64_t tokens : {1, 64, 700, 9000}) {
    RouteShape shape = kDeepSeek;
    shape.gate.tokens = tokens;
    const harness::RouteCall call(shape, TY_ROUTE_AUTO);
    const ty_align_args align = harness::align_args(shape.align());
    size_t bytes = 1, wanted = 2;
    ASSERT_EQ(ty_route_workspace_size(device_id(device), &call.args(), &bytes), TY_OK) << ty_last_error();
    ASSERT_EQ(ty_align_workspace_size(device_id(device), &align, &wanted), TY_OK) << ty_last_error();
    EXPECT_EQ(bytes, wanted) << tokens;
  }
}

}  // namespace
}  // namespace tokenyard::test
