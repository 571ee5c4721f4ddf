// The C++ layer over route.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenyard/route.hpp"

namespace {

using tokenyard::GateArgs;
using tokenyard::RouteArgs;

TEST(RouteApi, SortsWhatGateChooses) {
  const std::vector<float> logits{0, 3, 1, 2, 5, 1, 0, 4};
  std::vector<int32_t> ids(4), sorted, block_expert;
  std::vector<float> weights(4);
  GateArgs gate(logits.data(), TY_FLOAT32, 2, 4, 2);
  gate.ids = ids.data();
  gate.weights = weights.data();
  RouteArgs args(gate, 2);
  sorted.resize(static_cast<size_t>(args.align.capacity));
  block_expert.resize(static_cast<size_t>(args.align.num_blocks()));
  int32_t num_padded = 0;
  args.align.sorted_pair_ids = sorted.data();
  args.align.block_expert = block_expert.data();
  args.align.num_padded = &num_padded;
  const auto expect_routed = [&] {
    EXPECT_EQ(ids, (std::vector<int32_t>{1, 3, 0, 3}));
    EXPECT_EQ(num_padded, 6);
    EXPECT_EQ((std::vector<int32_t>(sorted.begin(), sorted.begin() + 6)),
              (std::vector<int32_t>{2, 4, 0, 4, 1, 3}));
    ids.assign(4, -7);
    sorted.assign(sorted.size(), -7);
  };
  EXPECT_EQ(tokenyard::route_workspace_size(TY_CPU, args), 0U);
  tokenyard::route(TY_CPU, args, tokenyard::Workspace(), nullptr);
  expect_routed();
  EXPECT_EQ(tokenyard::route_once_size(TY_CPU, args), 0U);
  tokenyard::route_once(TY_CPU, args, nullptr, 0, nullptr);
  expect_routed();
}

TEST(RouteApi, SizesFollowFromGatesArguments) {
  GateArgs gate(nullptr, TY_BFLOAT16, 10, *tokenyard::find_gate_preset("deepseek-v3"));
  gate.num_shared_experts = 1;
  const RouteArgs args(gate, 64);
  EXPECT_EQ(args.align.capacity, tokenyard::align_capacity(90, 257, 64));
  EXPECT_NE(tokenyard::route_explain(TY_CPU, args).find("10 rows of 256"), std::string::npos);
  EXPECT_NE(tokenyard::route_explain(TY_CPU, args).find("90 pairs"), std::string::npos);
}

TEST(RouteApi, ThrowsWhatTheLibrarySays) {
  const RouteArgs args(GateArgs(nullptr, TY_FLOAT32, 2, 4, 2), 2);
  try {
    tokenyard::route(TY_CPU, args, tokenyard::Workspace(), nullptr);
    FAIL() << "nothing was thrown";
  } catch (const tokenyard::Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 27), "route: gate: logits is NULL");
  }
}

}  // namespace
