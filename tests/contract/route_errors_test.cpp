// What route refuses, and in which words: its own, and those of gate and align.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/backend.hpp"
#include "tokenyard/tokenyard.h"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

// Fields are only ever added at the end: these places never change.
static_assert(offsetof(ty_route_args, path) == 4);
static_assert(offsetof(ty_route_args, gate) == 8);
static_assert(offsetof(ty_route_args, align) == 16);
static_assert(sizeof(ty_route_args) == 24, "no padding at the end: a new field changes the size");

// 4 tokens, 2 of 8 experts each, blocks of 4: tests break one thing of it. Expert e has the logit e.
struct ValidRoute {
  ValidCall order;
  std::vector<float> logits;
  std::vector<int32_t> ids = std::vector<int32_t>(8, -7);
  std::vector<float> weights = std::vector<float>(8, -7);
  ty_gate_args gate = TY_GATE_ARGS_INIT;
  ty_align_args& align = order.args;
  ty_route_args args = TY_ROUTE_ARGS_INIT;

  ValidRoute() {
    for (int i = 0; i < 32; ++i) logits.push_back(static_cast<float>(i % 8));
    gate.logits = logits.data();
    gate.num_tokens = 4;
    gate.num_experts = 8;
    gate.top_k = 2;
    gate.ids = ids.data();
    gate.weights = weights.data();
    args.gate = &gate;
    args.align = &align;
  }

  ty_status run() { return ty_route(kCpu, &args, nullptr, nullptr); }
};

TEST(RouteAbi, TheOrderIsOfGatesIds) {
  ValidRoute call;
  ASSERT_EQ(call.run(), TY_OK) << ty_last_error();
  EXPECT_EQ(call.ids, (std::vector<int32_t>{7, 6, 7, 6, 7, 6, 7, 6}));
  EXPECT_EQ(call.order.num_padded, 8);
  EXPECT_EQ(
      (std::vector<int32_t>(call.order.sorted_pair_ids.begin(), call.order.sorted_pair_ids.begin() + 9)),
      (std::vector<int32_t>{1, 3, 5, 7, 0, 2, 4, 6, 8}));
}

// What describes align's ids follows from gate: whatever stands there is not read.
TEST(RouteAbi, AlignsInputIsNotRead) {
  ValidRoute call;
  call.align.topk_ids = reinterpret_cast<const void*>(uintptr_t{1});
  call.align.ids_dtype = call.align.top_k = call.align.num_experts = -1;
  call.align.num_tokens = call.align.row_stride = -1;
  ASSERT_EQ(call.run(), TY_OK) << ty_last_error();
  EXPECT_EQ(call.order.num_padded, 8);
}

TEST(RouteAbi, SharedExpertsAreInTheOrder) {
  ValidRoute call;
  call.gate.num_shared_experts = 1;
  call.ids.resize(12);
  call.weights.resize(12);
  call.gate.ids = call.ids.data();
  call.gate.weights = call.weights.data();
  call.order.sorted_pair_ids.resize(48);
  call.align.sorted_pair_ids = call.order.sorted_pair_ids.data();
  call.order.block_expert.resize(12);
  call.align.block_expert = call.order.block_expert.data();
  call.align.capacity = 48;
  ASSERT_EQ(call.run(), TY_OK) << ty_last_error();
  EXPECT_EQ(call.order.num_padded, 12);
  EXPECT_EQ(call.order.block_expert[2], 8) << "the shared expert's id";
}

TEST(RouteAbi, NothingNeedsPointersToAskForSizesAndReasons) {
  ValidRoute call;
  call.gate.logits = call.gate.ids = nullptr;
  call.gate.weights = nullptr;
  call.align.sorted_pair_ids = call.align.block_expert = call.align.num_padded = nullptr;
  size_t bytes = 1;
  EXPECT_EQ(ty_route_workspace_size(kCpu, &call.args, &bytes), TY_OK) << ty_last_error();
  EXPECT_EQ(bytes, 0U);
  char why[500];
  ASSERT_EQ(ty_route_explain(kCpu, &call.args, why, sizeof why), TY_OK) << ty_last_error();
  EXPECT_EQ(std::string(why).substr(0, 5), "two: ");
}

struct Refusal {
  const char* name;
  std::function<void(ValidRoute&)> break_it;
  std::string begins;
  std::string expected;
};

class RouteRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(RouteRefusals, NameOperationAndArgument) {
  ValidRoute call;
  GetParam().break_it(call);
  const auto expect_refusal = [](ty_status status) {
    const std::string message = ty_last_error();
    EXPECT_EQ(status, TY_INVALID_ARGUMENT) << message;
    EXPECT_EQ(message.substr(0, GetParam().begins.size()), GetParam().begins) << message;
    EXPECT_NE(message.find("expected " + GetParam().expected), std::string::npos) << message;
  };
  size_t bytes = 0;
  char text[100];
  expect_refusal(call.run());
  expect_refusal(ty_route_workspace_size(kCpu, &call.args, &bytes));
  expect_refusal(ty_route_explain(kCpu, &call.args, text, sizeof text));
  EXPECT_EQ(call.ids, std::vector<int32_t>(8, -7)) << "a refused call writes nothing";
}

const std::string kSize = std::to_string(sizeof(ty_route_args));  // of this, the first version

const Refusal kRefusals[] = {
    {"struct_size_not_set", [](ValidRoute& c) { c.args.struct_size = 0; }, "route: struct_size is 0,",
     "at least " + kSize},
    {"path", [](ValidRoute& c) { c.args.path = 3; }, "route: path is 3,", "a ty_route_path"},
    {"gate_null", [](ValidRoute& c) { c.args.gate = nullptr; }, "route: gate: args is NULL,",
     "a ty_gate_args"},
    {"align_null", [](ValidRoute& c) { c.args.align = nullptr; }, "route: align: args is NULL,",
     "a ty_align_args"},
    {"gates_struct_size", [](ValidRoute& c) { c.gate.struct_size = 4; }, "route: gate: struct_size is 4,",
     "at least "},
    {"aligns_struct_size", [](ValidRoute& c) { c.align.struct_size = 4; }, "route: align: struct_size is 4,",
     "at least "},
    {"top_k", [](ValidRoute& c) { c.gate.top_k = 9; }, "route: gate: top_k is 9,", "1 to 8"},
    {"block_size", [](ValidRoute& c) { c.align.block_size = 0; }, "route: align: block_size is 0,", "1 to "},
    {"capacity", [](ValidRoute& c) { c.align.capacity = 31; }, "route: align: capacity is 31,", "32 to "},
    {"too_many_physical_experts",
     [](ValidRoute& c) {
       c.gate.replicas = c.gate.num_replicas = c.ids.data();
       c.gate.max_replicas = 1;
       c.gate.num_physical_experts = 5000;
     },
     "route: gate: num_physical_experts + num_shared_experts is 5000 + 0,", "a sum of at most 4096"},
    {"too_many_with_the_shared",
     [](ValidRoute& c) {
       c.gate.num_experts = 4095;
       c.gate.num_shared_experts = 3;
     },
     "route: gate: num_experts + num_shared_experts is 4095 + 3,", "a sum of at most 4096"},
};
INSTANTIATE_TEST_SUITE_P(Route, RouteRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

TEST(RouteErrors, OneLaunchWhereThereIsNone) {
  ValidRoute call;
  call.args.path = TY_ROUTE_ONE;
  EXPECT_EQ(call.run(), TY_UNSUPPORTED);
  EXPECT_EQ(std::string(ty_last_error()).substr(0, 28), "route: path is TY_ROUTE_ONE ") << ty_last_error();
}

TEST(RouteErrors, NoPlaceForTheSize) {
  ValidRoute call;
  EXPECT_EQ(ty_route_workspace_size(kCpu, &call.args, nullptr), TY_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(ty_last_error()).find("route_workspace_size: bytes is NULL, expected where"), 0U)
      << ty_last_error();
  EXPECT_NE(std::string(ty_last_error()).find(": pass the address of a size_t"), std::string::npos);
}

}  // namespace
}  // namespace tokenyard::test
