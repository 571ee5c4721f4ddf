// What gate refuses, and in which words.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tokenyard/tokenyard.h"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

// Fields are only ever added at the end: these places never change.
static_assert(offsetof(ty_gate_args, logits) == 8);
static_assert(offsetof(ty_gate_args, num_experts) == 32);
static_assert(offsetof(ty_gate_args, score) == 40);
static_assert(offsetof(ty_gate_args, bias) == 48);
static_assert(offsetof(ty_gate_args, epsilon) == 72);
static_assert(offsetof(ty_gate_args, shared_weight) == 88);
static_assert(offsetof(ty_gate_args, replicas) == 96);
static_assert(offsetof(ty_gate_args, num_real_tokens) == 120);
static_assert(offsetof(ty_gate_args, physical_counts) == 152);
static_assert(offsetof(ty_gate_args, reserved) == 164);
static_assert(sizeof(ty_gate_args) == 168, "no padding at the end: a new field changes the size");

// 3 tokens, 2 of 8 experts each: tests break one thing of it.
struct ValidGate {
  std::vector<float> logits = std::vector<float>(24, 0.5f);
  std::vector<float> bias = std::vector<float>(8, 0.0f);
  std::vector<int32_t> replicas = std::vector<int32_t>(16, 0);
  std::vector<int32_t> num_replicas = std::vector<int32_t>(8, 1);
  std::vector<int64_t> ids = std::vector<int64_t>(6, -7);
  std::vector<float> weights = std::vector<float>(6, -7);
  std::vector<int32_t> counts = std::vector<int32_t>(8, -7);
  ty_gate_args args = TY_GATE_ARGS_INIT;

  ValidGate() {
    args.logits = logits.data();
    args.num_tokens = 3;
    args.num_experts = 8;
    args.top_k = 2;
    args.ids = ids.data();
    args.weights = weights.data();
  }
  ValidGate(const ValidGate&) = delete;
  ValidGate& operator=(const ValidGate&) = delete;

  void with_groups(int32_t groups, int32_t kept) {
    args.num_groups = groups;
    args.kept_groups = kept;
  }
  void with_replicas() {
    args.replicas = replicas.data();
    args.num_replicas = num_replicas.data();
    args.max_replicas = 2;
    args.num_physical_experts = 16;
  }
};

struct Refusal {
  const char* name;
  std::function<void(ValidGate&)> break_it;
  std::string begins;
  std::string expected;
};

void expect_refusal(ty_status status, const Refusal& refusal) {
  const std::string message = ty_last_error();
  EXPECT_EQ(status, TY_INVALID_ARGUMENT) << message;
  EXPECT_EQ(message.substr(0, refusal.begins.size()), refusal.begins) << message;
  EXPECT_NE(message.find("expected " + refusal.expected), std::string::npos) << message;
}

class GateRefusals : public testing::TestWithParam<Refusal> {};
class GatePointerRefusals : public testing::TestWithParam<Refusal> {};

TEST(GateAbi, TheValidCallIsValid) {
  ValidGate call;
  call.args.bias = call.bias.data();
  call.with_groups(4, 2);
  call.with_replicas();
  call.args.counts = call.counts.data();
  ASSERT_EQ(ty_gate(kCpu, &call.args, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(call.counts, (std::vector<int32_t>{3, 3, 0, 0, 0, 0, 0, 0}));
}

TEST(GateAbi, NoTokensNeedNoPointersButClearCounts) {
  ValidGate call;
  call.args.num_tokens = 0;
  call.args.logits = call.args.ids = nullptr;
  call.args.weights = nullptr;
  call.args.counts = call.counts.data();
  ASSERT_EQ(ty_gate(kCpu, &call.args, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(call.counts, std::vector<int32_t>(8, 0));
}

TEST(GateAbi, ExplainNeedsNoPointers) {
  ty_gate_args args = TY_GATE_ARGS_INIT;
  args.num_tokens = 4096;
  args.num_experts = 256;
  args.top_k = 8;
  char why[200];
  ASSERT_EQ(ty_gate_explain(kCpu, &args, why, sizeof why), TY_OK) << ty_last_error();
  EXPECT_NE(std::string(why).find("4096 rows of 256"), std::string::npos) << why;
}

TEST_P(GateRefusals, NameTheArgument) {
  ValidGate call;
  GetParam().break_it(call);
  expect_refusal(ty_gate(kCpu, &call.args, nullptr), GetParam());
  EXPECT_EQ(call.ids, std::vector<int64_t>(6, -7)) << "a refused call writes nothing";
  char text[100];
  expect_refusal(ty_gate_explain(kCpu, &call.args, text, sizeof text), GetParam());
}

TEST_P(GatePointerRefusals, NameTheArgument) {
  ValidGate call;
  GetParam().break_it(call);
  expect_refusal(ty_gate(kCpu, &call.args, nullptr), GetParam());
}

const std::string kSize = std::to_string(sizeof(ty_gate_args));  // of this, the first version

const Refusal kValues[] = {
    {"struct_size_not_set", [](ValidGate& c) { c.args.struct_size = 0; }, "gate: struct_size is 0,",
     "at least " + kSize},
    {"struct_size_of_a_newer_header", [](ValidGate& c) { c.args.struct_size += 8; },
     "gate: struct_size is " + std::to_string(sizeof(ty_gate_args) + 8), "at most " + kSize},
    {"logits_dtype", [](ValidGate& c) { c.args.logits_dtype = TY_INT32; }, "gate: logits_dtype is 0,",
     "TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16"},
    {"score", [](ValidGate& c) { c.args.score = 3; }, "gate: score is 3,", "a ty_gate_score"},
    {"weight_mode", [](ValidGate& c) { c.args.weight_mode = -1; }, "gate: weight_mode is -1,",
     "a ty_gate_weights"},
    {"bias_dtype",
     [](ValidGate& c) {
       c.args.bias = c.bias.data();
       c.args.bias_dtype = TY_BFLOAT16;
     },
     "gate: bias_dtype is 3,", "TY_FLOAT32 or the type of the logits"},
    {"num_experts_zero", [](ValidGate& c) { c.args.num_experts = 0; }, "gate: num_experts is 0,",
     "1 to 4096"},
    {"num_experts_too_many", [](ValidGate& c) { c.args.num_experts = 4097; }, "gate: num_experts is 4097,",
     "1 to 4096"},
    {"top_k_zero", [](ValidGate& c) { c.args.top_k = 0; }, "gate: top_k is 0,", "1 to 8"},
    {"top_k_beyond_the_experts", [](ValidGate& c) { c.args.top_k = 9; }, "gate: top_k is 9,", "1 to 8"},
    {"top_k_too_many",
     [](ValidGate& c) {
       c.args.num_experts = 256;
       c.args.top_k = 65;
     },
     "gate: top_k is 65,", "1 to 64"},
    {"num_tokens_negative", [](ValidGate& c) { c.args.num_tokens = -1; }, "gate: num_tokens is -1,",
     "0 to 1073741823"},
    {"num_tokens_beyond_int32_pairs", [](ValidGate& c) { c.args.num_tokens = LLONG_MAX; },
     "gate: num_tokens is 9223372036854775807,", "0 to 1073741823"},
    {"row_stride_below_the_experts", [](ValidGate& c) { c.args.row_stride = 7; }, "gate: row_stride is 7,",
     "8 to "},
    {"row_stride_too_large", [](ValidGate& c) { c.args.row_stride = LLONG_MAX; },
     "gate: row_stride is 9223372036854775807,", "8 to "},
    {"num_groups_negative", [](ValidGate& c) { c.with_groups(-1, 1); }, "gate: num_groups is -1,", "1 to 8"},
    {"num_groups_no_divisor", [](ValidGate& c) { c.with_groups(3, 1); }, "gate: num_groups is 3,",
     "a divisor of num_experts, which is 8"},
    {"kept_groups_zero", [](ValidGate& c) { c.with_groups(4, 0); }, "gate: kept_groups is 0,", "1 to 4"},
    {"kept_groups_too_many", [](ValidGate& c) { c.with_groups(4, 5); }, "gate: kept_groups is 5,", "1 to 4"},
    {"kept_groups_too_small",
     [](ValidGate& c) {
       c.with_groups(4, 1);
       c.args.top_k = 3;
     },
     "gate: top_k is 3,", "1 to 2"},
    {"group_score", [](ValidGate& c) { c.args.group_score = 2; }, "gate: group_score is 2,",
     "a ty_gate_group_score"},
    {"two_best_of_one",
     [](ValidGate& c) {
       c.with_groups(8, 2);
       c.args.group_score = TY_GATE_GROUP_TOP2;
     },
     "gate: group_score is TY_GATE_GROUP_TOP2 with one expert a group,", "at least two experts a group"},
    {"epsilon_negative", [](ValidGate& c) { c.args.epsilon = -1; }, "gate: epsilon is -1,",
     "a finite number of at least 0"},
    {"epsilon_nan", [](ValidGate& c) { c.args.epsilon = NAN; }, "gate: epsilon is nan,",
     "a finite number of at least 0"},
    {"scale_zero", [](ValidGate& c) { c.args.scale = 0; }, "gate: scale is 0,",
     "a finite number other than 0"},
    {"scale_infinite", [](ValidGate& c) { c.args.scale = INFINITY; }, "gate: scale is inf,",
     "a finite number other than 0"},
    {"num_shared_experts", [](ValidGate& c) { c.args.num_shared_experts = 65; },
     "gate: num_shared_experts is 65,", "0 to 64"},
    {"shared_mode", [](ValidGate& c) { c.args.shared_mode = 2; }, "gate: shared_mode is 2,",
     "a ty_gate_shared"},
    {"shared_weight", [](ValidGate& c) { c.args.shared_weight = INFINITY; }, "gate: shared_weight is inf,",
     "a finite number"},
    {"max_replicas",
     [](ValidGate& c) {
       c.with_replicas();
       c.args.max_replicas = 0;
     },
     "gate: max_replicas is 0,", "1 to 65536"},
    {"num_physical_experts",
     [](ValidGate& c) {
       c.with_replicas();
       c.args.num_physical_experts = 0;
     },
     "gate: num_physical_experts is 0,", "1 to 65536"},
    {"physical_counts_without_replicas", [](ValidGate& c) { c.args.physical_counts = c.counts.data(); },
     "gate: physical_counts is given without replicas,", "NULL"},
    {"ids_dtype", [](ValidGate& c) { c.args.ids_dtype = TY_FLOAT32; }, "gate: ids_dtype is 2,",
     "TY_INT32 or TY_INT64"},
    {"lanes", [](ValidGate& c) { c.args.lanes = 3; }, "gate: lanes is 3,", "0, or a power of two up to 64"},
    {"reserved", [](ValidGate& c) { c.args.reserved = 1; }, "gate: reserved is 1,", "0"},
};
INSTANTIATE_TEST_SUITE_P(Gate, GateRefusals, testing::ValuesIn(kValues),
                         [](const auto& info) { return info.param.name; });

template <class T>
T* odd(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + 1);
}

const Refusal kPointers[] = {
    {"logits_null", [](ValidGate& c) { c.args.logits = nullptr; }, "gate: logits is NULL,", "a pointer"},
    {"ids_null", [](ValidGate& c) { c.args.ids = nullptr; }, "gate: ids is NULL,", "a pointer"},
    {"weights_null", [](ValidGate& c) { c.args.weights = nullptr; }, "gate: weights is NULL,", "a pointer"},
    {"num_replicas_null",
     [](ValidGate& c) {
       c.with_replicas();
       c.args.num_replicas = nullptr;
     },
     "gate: num_replicas is NULL,", "a pointer"},
    {"logits_odd", [](ValidGate& c) { c.args.logits = odd(c.logits.data()); },
     "gate: logits is at address 0x", "a multiple of 4"},
    {"bfloat16_logits_odd",
     [](ValidGate& c) {
       c.args.logits_dtype = TY_BFLOAT16;
       c.args.logits = odd(c.logits.data());
     },
     "gate: logits is at address 0x", "a multiple of 2"},
    {"bias_odd", [](ValidGate& c) { c.args.bias = odd(c.bias.data()); }, "gate: bias is at address 0x",
     "a multiple of 4"},
    {"replicas_odd",
     [](ValidGate& c) {
       c.with_replicas();
       c.args.replicas = odd(c.replicas.data());
     },
     "gate: replicas is at address 0x", "a multiple of 4"},
    {"num_real_tokens_odd", [](ValidGate& c) { c.args.num_real_tokens = odd(c.counts.data()); },
     "gate: num_real_tokens is at address 0x", "a multiple of 4"},
    {"int64_ids_odd",
     [](ValidGate& c) {
       c.args.ids_dtype = TY_INT64;
       c.args.ids = reinterpret_cast<char*>(c.ids.data()) + 4;
     },
     "gate: ids is at address 0x", "a multiple of 8"},
    {"weights_odd", [](ValidGate& c) { c.args.weights = odd(c.weights.data()); },
     "gate: weights is at address 0x", "a multiple of 4"},
    {"counts_odd", [](ValidGate& c) { c.args.counts = odd(c.counts.data()); },
     "gate: counts is at address 0x", "a multiple of 4"},
    {"physical_counts_odd",
     [](ValidGate& c) {
       c.with_replicas();
       c.args.physical_counts = odd(c.counts.data());
     },
     "gate: physical_counts is at address 0x", "a multiple of 4"},
};
INSTANTIATE_TEST_SUITE_P(Gate, GatePointerRefusals, testing::ValuesIn(kPointers),
                         [](const auto& info) { return info.param.name; });

TEST(GateErrors, NoArgs) {
  EXPECT_EQ(ty_gate(kCpu, nullptr, nullptr), TY_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(ty_last_error()).substr(0, 22), "gate: args is NULL, ex");
}

}  // namespace
}  // namespace tokenyard::test
