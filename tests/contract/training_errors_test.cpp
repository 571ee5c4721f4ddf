// What gate_backward, router_loss and balance refuse, and in which words.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenyard/tokenyard.h"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

// Fields are only ever added at the end: these places never change.
static_assert(offsetof(ty_gate_backward_args, logits) == 8);
static_assert(offsetof(ty_gate_backward_args, num_experts) == 32);
static_assert(offsetof(ty_gate_backward_args, epsilon) == 48);
static_assert(offsetof(ty_gate_backward_args, ids) == 64);
static_assert(offsetof(ty_gate_backward_args, logits_grad) == 80);
static_assert(sizeof(ty_gate_backward_args) == 88, "no padding at the end: a new field changes the size");
static_assert(offsetof(ty_router_loss_args, num_experts) == 32);
static_assert(offsetof(ty_router_loss_args, sequence_offsets) == 48);
static_assert(offsetof(ty_router_loss_args, ids) == 72);
static_assert(offsetof(ty_router_loss_args, logits_grad) == 104);
static_assert(sizeof(ty_router_loss_args) == 112, "no padding at the end: a new field changes the size");
static_assert(offsetof(ty_balance_args, rate) == 20);
static_assert(offsetof(ty_balance_args, statistics) == 32);
static_assert(sizeof(ty_balance_args) == 40, "no padding at the end: a new field changes the size");

// 3 tokens, 2 of 8 experts each: tests break one thing of it.
struct ValidTraining {
  std::vector<float> logits = std::vector<float>(24, 0.5f);
  std::vector<int32_t> ids = std::vector<int32_t>(6, 1);
  std::vector<float> weights_grad = std::vector<float>(6, 1);
  std::vector<float> gradient = std::vector<float>(24, -7);
  std::vector<int32_t> offsets = std::vector<int32_t>{0, 3};
  std::vector<int32_t> counts = std::vector<int32_t>{3, 1, 0, 0, 0, 0, 1, 1};
  std::vector<float> losses = std::vector<float>(2, -7);
  std::vector<float> scratch = std::vector<float>(2, -7);
  std::vector<float> bias = std::vector<float>(8, 0);
  std::vector<float> statistics = std::vector<float>(4, -7);
  ty_gate_backward_args backward = TY_GATE_BACKWARD_ARGS_INIT;
  ty_router_loss_args loss = TY_ROUTER_LOSS_ARGS_INIT;
  ty_balance_args balance = TY_BALANCE_ARGS_INIT;

  ValidTraining() {
    backward.logits = loss.logits = logits.data();
    backward.num_tokens = loss.num_tokens = 3;
    backward.num_experts = loss.num_experts = balance.num_experts = 8;
    backward.top_k = loss.top_k = loss.num_columns = 2;
    backward.ids = loss.ids = ids.data();
    backward.weights_grad = weights_grad.data();
    backward.logits_grad = loss.logits_grad = gradient.data();
    loss.balance_coefficient = 0.01f;
    loss.sequence_offsets = offsets.data();
    balance.counts = loss.counts = counts.data();
    loss.losses = losses.data();
    loss.scratch = scratch.data();
    balance.bias = bias.data();
    balance.statistics = statistics.data();
    balance.rate = 0.5f;
  }
  ValidTraining(const ValidTraining&) = delete;
  ValidTraining& operator=(const ValidTraining&) = delete;
};

using Break = std::function<void(ValidTraining&)>;

struct Refusal {
  const char* name;
  Break break_it;
  std::string begins;
  std::string expected;
};

ty_status call(const std::string& operation, ValidTraining& with) {
  if (operation.starts_with("gate_backward")) return ty_gate_backward(kCpu, &with.backward, nullptr);
  if (operation.starts_with("router_loss")) return ty_router_loss(kCpu, &with.loss, nullptr);
  return ty_balance(kCpu, &with.balance, nullptr);
}

TEST(TrainingAbi, TheValidCallsAreValid) {
  ValidTraining with;
  ASSERT_EQ(ty_balance(kCpu, &with.balance, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(with.bias, (std::vector<float>{-0.5f, -0.5f, 0.5f, 0.5f, 0.5f, 0.5f, -0.5f, -0.5f}));
  EXPECT_EQ(with.statistics[TY_LOAD_MAX], 4);
  ASSERT_EQ(ty_gate_backward(kCpu, &with.backward, nullptr), TY_OK) << ty_last_error();
  ASSERT_EQ(ty_router_loss(kCpu, &with.loss, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(with.counts, (std::vector<int32_t>{0, 6, 0, 0, 0, 0, 0, 0}));
}

TEST(TrainingAbi, NoTokensNeedNoRows) {
  ValidTraining with;
  with.backward.num_tokens = with.loss.num_tokens = 0;
  with.backward.logits = with.loss.logits = with.backward.ids = nullptr;
  with.backward.weights_grad = nullptr;
  with.backward.logits_grad = with.loss.logits_grad = nullptr;
  with.loss.scratch = nullptr;
  with.loss.sequence_offsets = nullptr;
  ASSERT_EQ(ty_gate_backward(kCpu, &with.backward, nullptr), TY_OK) << ty_last_error();
  ASSERT_EQ(ty_router_loss(kCpu, &with.loss, nullptr), TY_OK) << ty_last_error();
  EXPECT_EQ(with.losses, (std::vector<float>{0, 0}));
  EXPECT_EQ(with.counts, std::vector<int32_t>(8, 0));
}

class TrainingRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(TrainingRefusals, NameTheArgument) {
  ValidTraining with;
  GetParam().break_it(with);
  EXPECT_EQ(call(GetParam().begins, with), TY_INVALID_ARGUMENT);
  const std::string message = ty_last_error();
  EXPECT_EQ(message.substr(0, GetParam().begins.size()), GetParam().begins) << message;
  EXPECT_NE(message.find("expected " + GetParam().expected), std::string::npos) << message;
  EXPECT_EQ(with.gradient, std::vector<float>(24, -7)) << "a refused call writes nothing";
  EXPECT_EQ(with.losses, std::vector<float>(2, -7));
  EXPECT_EQ(with.bias, std::vector<float>(8, 0));
}

template <class T>
const T* odd(const std::vector<T>& values) {
  return reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(values.data()) + 1);
}
float* odd(std::vector<float>& values) {
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(values.data()) + 1);
}

using V = ValidTraining;

const Refusal kRefusals[] = {
    {"backward_struct_size", [](V& v) { v.backward.struct_size = 0; }, "gate_backward: struct_size is 0,",
     "at least 88"},
    {"backward_logits_dtype", [](V& v) { v.backward.logits_dtype = TY_INT64; },
     "gate_backward: logits_dtype is 1,", "TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16"},
    {"backward_num_experts", [](V& v) { v.backward.num_experts = 4097; },
     "gate_backward: num_experts is 4097,", "1 to 4096"},
    {"backward_num_tokens", [](V& v) { v.backward.num_tokens = LLONG_MAX; }, "gate_backward: num_tokens is",
     "0 to 1073741823"},
    {"backward_row_stride", [](V& v) { v.backward.row_stride = 7; }, "gate_backward: row_stride is 7,",
     "8 to"},
    {"backward_top_k_zero", [](V& v) { v.backward.top_k = 0; }, "gate_backward: top_k is 0,", "1 to 64"},
    {"backward_top_k_beyond_the_experts", [](V& v) { v.backward.top_k = 9; }, "gate_backward: top_k is 9,",
     "1 to 8"},
    {"backward_shared", [](V& v) { v.backward.num_shared_experts = 65; },
     "gate_backward: num_shared_experts is 65,", "0 to 64"},
    {"backward_score", [](V& v) { v.backward.score = 3; }, "gate_backward: score is 3,", "a ty_gate_score"},
    {"backward_weight_mode", [](V& v) { v.backward.weight_mode = 3; }, "gate_backward: weight_mode is 3,",
     "a ty_gate_weights"},
    {"backward_epsilon", [](V& v) { v.backward.epsilon = NAN; }, "gate_backward: epsilon is nan,",
     "a finite number of at least 0"},
    {"backward_scale", [](V& v) { v.backward.scale = 0; }, "gate_backward: scale is 0,",
     "a finite number other than 0"},
    {"backward_ids_dtype", [](V& v) { v.backward.ids_dtype = TY_FLOAT32; }, "gate_backward: ids_dtype is 2,",
     "TY_INT32 or TY_INT64"},
    {"backward_logits_null", [](V& v) { v.backward.logits = nullptr; }, "gate_backward: logits is NULL,",
     "a pointer"},
    {"backward_ids_null", [](V& v) { v.backward.ids = nullptr; }, "gate_backward: ids is NULL,", "a pointer"},
    {"backward_weights_grad_odd", [](V& v) { v.backward.weights_grad = odd(std::as_const(v.weights_grad)); },
     "gate_backward: weights_grad is at address 0x", "a multiple of 4"},
    {"backward_logits_grad_null", [](V& v) { v.backward.logits_grad = nullptr; },
     "gate_backward: logits_grad is NULL,", "a pointer"},
    {"loss_struct_size", [](V& v) { v.loss.struct_size += 8; }, "router_loss: struct_size is 120,",
     "at most 112"},
    {"loss_score", [](V& v) { v.loss.score = -1; }, "router_loss: score is -1,", "a ty_gate_score"},
    {"loss_balance_coefficient", [](V& v) { v.loss.balance_coefficient = INFINITY; },
     "router_loss: balance_coefficient is inf,", "a finite number"},
    {"loss_z_coefficient", [](V& v) { v.loss.z_coefficient = NAN; }, "router_loss: z_coefficient is nan,",
     "a finite number"},
    {"loss_num_sequences", [](V& v) { v.loss.num_sequences = 0; }, "router_loss: num_sequences is 0,",
     "1 to 268435455"},
    {"loss_counts_null", [](V& v) { v.loss.counts = nullptr; }, "router_loss: counts is NULL,", "a pointer"},
    {"loss_top_k", [](V& v) { v.loss.top_k = 9; }, "router_loss: top_k is 9,", "1 to 8"},
    {"loss_num_columns", [](V& v) { v.loss.num_columns = 1; }, "router_loss: num_columns is 1,", "2 to 128"},
    {"loss_ids_dtype", [](V& v) { v.loss.ids_dtype = 5; }, "router_loss: ids_dtype is 5,",
     "TY_INT32 or TY_INT64"},
    {"loss_losses_null", [](V& v) { v.loss.losses = nullptr; }, "router_loss: losses is NULL,", "a pointer"},
    {"loss_scratch_null", [](V& v) { v.loss.scratch = nullptr; }, "router_loss: scratch is NULL,",
     "a pointer"},
    {"loss_logits_grad_odd", [](V& v) { v.loss.logits_grad = odd(v.gradient); },
     "router_loss: logits_grad is at address 0x", "a multiple of 4"},
    {"loss_offsets_odd", [](V& v) { v.loss.sequence_offsets = odd(std::as_const(v.offsets)); },
     "router_loss: sequence_offsets is at address 0x", "a multiple of 4"},
    {"balance_struct_size", [](V& v) { v.balance.struct_size = 1; }, "balance: struct_size is 1,",
     "at least 40"},
    {"balance_num_experts", [](V& v) { v.balance.num_experts = 0; }, "balance: num_experts is 0,",
     "1 to 4096"},
    {"balance_counts_dtype", [](V& v) { v.balance.counts_dtype = TY_FLOAT32; }, "balance: counts_dtype is 2,",
     "TY_INT32 or TY_INT64"},
    {"balance_rate", [](V& v) { v.balance.rate = NAN; }, "balance: rate is nan,", "a finite number"},
    {"balance_counts_null", [](V& v) { v.balance.counts = nullptr; }, "balance: counts is NULL,",
     "a pointer"},
    {"balance_bias_odd", [](V& v) { v.balance.bias = odd(v.bias); }, "balance: bias is at address 0x",
     "a multiple of 4"},
    {"balance_statistics_odd", [](V& v) { v.balance.statistics = odd(v.statistics); },
     "balance: statistics is at address 0x", "a multiple of 4"},
};
INSTANTIATE_TEST_SUITE_P(Training, TrainingRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

TEST(TrainingErrors, NoArgs) {
  EXPECT_EQ(ty_gate_backward(kCpu, nullptr, nullptr), TY_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(ty_last_error()).substr(0, 30), "gate_backward: args is NULL, e");
}

}  // namespace
}  // namespace tokenyard::test
