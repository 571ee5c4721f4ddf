// Shapes on the borders of route's one launch, and what it leaves to two.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device.hpp"
#include "gate_expect.hpp"
#include "route_expect.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {
namespace {

using harness::RouteShape;

const RouteShape kDeepSeek{.gate = deepseek_v3(1), .block = 128};

// On the devices that have a launch for it.
class OneLaunch : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    TY_SKIP_IF_MISSING(device);
    for (const tuning::RouteLaunch& launch : find_backend(device)->route.launches) {
      most = launch.all_tokens();
      borders.push_back(most);
    }
    if (borders.empty()) GTEST_SKIP() << device << " has none";
  }

  const std::string device = GetParam();
  std::vector<int64_t> borders;
  int64_t most = 0;
};

INSTANTIATE_TEST_SUITE_P(Route, OneLaunch, testing::ValuesIn(kKernelDevices),
                         [](const auto& info) { return info.param; });

TEST_P(OneLaunch, TakesBatchesUpToItsBorder) {
  RouteShape shape = kDeepSeek;
  for (const int64_t border : borders) {
    for (const int64_t tokens : {int64_t{1}, border - 1, border, border + 1}) {
      shape.gate.tokens = tokens;
      shape.gate.seed = static_cast<uint64_t>(tokens);
      EXPECT_EQ(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}),
                tokens > 0 && tokens <= most)
          << tokens;
    }
  }
}

// Real or padding, in blocks that it fills or not, with room beyond them.
TEST_P(OneLaunch, TakesOneToken) {
  RouteShape shape{.gate = {.tokens = 1, .experts = 64, .weights = TY_GATE_RENORMALIZED}};
  for (const int32_t top_k : {1, 5, 8}) {
    for (const int64_t padding : {0, 1}) {
      for (const int32_t block : {1, 128}) {
        shape.gate.top_k = top_k;
        shape.gate.padding = padding;
        shape.block = block;
        shape.extra_capacity = top_k == 5 ? 300 : 0;
        EXPECT_TRUE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}));
      }
    }
  }
}

// Blocks smaller than a batch need a sum over the experts, others do not.
TEST_P(OneLaunch, TakesBlocksOfAnySize) {
  for (const int32_t block : {1, 31, 32, 1000}) {
    RouteShape shape{.gate = {.tokens = 32, .experts = 64, .top_k = 5, .weights = TY_GATE_RENORMALIZED},
                     .block = block};
    shape.gate.logits = block % 2 == 0 ? harness::Logits::kEqual : harness::Logits::kNormal;
    shape.extra_capacity = block % 3 == 0 ? 77 : -5;
    EXPECT_TRUE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}));
  }
}

TEST_P(OneLaunch, TakesLogitsOfEveryKind) {
  for (int kind = 0; kind < 9; ++kind) {
    RouteShape shape = kDeepSeek;
    shape.gate.tokens = 4;
    shape.gate.logits = static_cast<harness::Logits>(kind);
    shape.gate.dtype = kind % 2 == 0 ? TY_FLOAT32 : TY_BFLOAT16;
    EXPECT_TRUE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}));
    shape.gate.groups = shape.gate.kept_groups = 0;
    EXPECT_TRUE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}));
    shape.gate.bias = false;
    shape.gate.score = TY_GATE_SOFTMAX;
    shape.gate.epsilon = 0;
    EXPECT_TRUE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}));
  }
}

TEST_P(OneLaunch, LeavesWhatItIsNotMadeForToTwo) {
  std::vector<RouteShape> shapes(10, kDeepSeek);
  shapes[0].gate.shared = 1;
  shapes[1].gate.replicas = 2;
  shapes[2].local_experts = 9;
  shapes[3].gate.dtype = TY_FLOAT16;
  shapes[4].gate.groups = 4;
  shapes[4].gate.kept_groups = 2;
  shapes[5].gate.score = TY_GATE_SQRT_SOFTPLUS;
  shapes[6].gate.top_k = 9;
  shapes[7].gate.experts = 512;
  shapes[8].gate.row_stride = 257;
  shapes[9].gate.bias_as_logits = true;
  for (const RouteShape& shape : shapes) {
    EXPECT_FALSE(expect_route_right(device, harness::draw(shape), {.optional_outputs = false}))
        << shape.command();
  }
  EXPECT_FALSE(expect_route_right(device, harness::draw(kDeepSeek)));  // optional outputs
}

}  // namespace
}  // namespace tokenyard::test
