// Random problems for route: gate's bits, and the order that align's reference makes of them. The name of a
// test holds its seed, its failure the command that runs it again.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "device.hpp"
#include "route_expect.hpp"

namespace tokenyard::test {
namespace {

class RouteRandom : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void run(int64_t max_logits) {
    const auto& [device, seed] = GetParam();
    TY_SKIP_IF_MISSING(device);
    const harness::RouteProblem problem =
        harness::draw(harness::draw_route_shape(static_cast<uint64_t>(seed), max_logits));
    expect_route_right(device, problem,
                       {.optional_outputs = seed % 3 == 0, .misalignment = seed % 8 == 1 ? 1 : 0});
  }
};
class RouteRandomLarge : public RouteRandom {};

TEST_P(RouteRandom, IsRight) { run(3000); }
TEST_P(RouteRandomLarge, IsRight) { run(1 << 19); }

std::string seed_name(const testing::TestParamInfo<RouteRandom::ParamType>& info) {
  return std::get<0>(info.param) + "_seed_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Route, RouteRandom,
                         testing::Combine(testing::ValuesIn(kRealDevices), testing::Range(0, 20)), seed_name);
INSTANTIATE_TEST_SUITE_P(Route, RouteRandomLarge,
                         testing::Combine(testing::Values("cpu", "cuda", "hip"), testing::Range(1000, 1016)),
                         seed_name);

}  // namespace
}  // namespace tokenyard::test
