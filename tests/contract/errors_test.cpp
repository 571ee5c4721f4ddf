// Every refusal of the C ABI says what was wrong: operation, argument, what came, what was expected, and what
// to do about it.
#include <gtest/gtest.h>

#include <climits>
#include <functional>
#include <string>
#include <vector>

#include "runtime/backend.hpp"
#include "tokenyard/tokenyard.h"
#include "valid_call.hpp"

namespace tokenyard::test {
namespace {

// What a broken call must say: the start of the message up to what came, then what was expected.
struct Refusal {
  const char* name;
  std::function<void(ValidCall&)> break_it;
  std::string begins;
  std::string expected;
};

void expect_refusal(ty_status status, ty_status want, const std::string& begins,
                    const std::string& expected) {
  const std::string message = ty_last_error();
  EXPECT_EQ(status, want) << message;
  EXPECT_EQ(message.substr(0, begins.size()), begins) << message;
  EXPECT_NE(message.find("expected " + expected), std::string::npos) << message;
}

class Refusals : public testing::TestWithParam<Refusal> {};
class PointerRefusals : public testing::TestWithParam<Refusal> {};

// Shapes are refused alike by the call, the size query and the explanation, and the call writes nothing.
TEST_P(Refusals, NameTheArgument) {
  const Refusal& refusal = GetParam();
  ValidCall call;
  refusal.break_it(call);
  const std::vector<int32_t> before = call.sorted_pair_ids;
  expect_refusal(ty_align(kCpu, &call.args, nullptr, nullptr), TY_INVALID_ARGUMENT, refusal.begins,
                 refusal.expected);
  EXPECT_EQ(call.sorted_pair_ids, before);
  size_t bytes = 0;
  expect_refusal(ty_align_workspace_size(kCpu, &call.args, &bytes), TY_INVALID_ARGUMENT, refusal.begins,
                 refusal.expected);
  char text[100];
  expect_refusal(ty_align_explain(kCpu, &call.args, text, sizeof text), TY_INVALID_ARGUMENT, refusal.begins,
                 refusal.expected);
}

const std::string kFirstSize = std::to_string(offsetof(ty_align_args, first_id));  // of the first version
const std::string kSize = std::to_string(sizeof(ty_align_args));

const Refusal kShapes[] = {
    {"struct_size_not_set", [](ValidCall& c) { c.args.struct_size = 0; }, "align: struct_size is 0,",
     "at least " + kFirstSize},
    {"struct_size_short", [](ValidCall& c) { c.args.struct_size = offsetof(ty_align_args, first_id) - 4; },
     "align: struct_size is 132,", "at least " + kFirstSize},
    {"struct_size_of_a_newer_header", [](ValidCall& c) { c.args.struct_size = sizeof(ty_align_args) + 8; },
     "align: struct_size is " + std::to_string(sizeof(ty_align_args) + 8), "at most " + kSize},
    {"ids_dtype", [](ValidCall& c) { c.args.ids_dtype = 2; }, "align: ids_dtype is 2,",
     "TY_INT32 or TY_INT64"},
    {"top_k_zero", [](ValidCall& c) { c.args.top_k = 0; }, "align: top_k is 0,", "1 to 2147483647"},
    {"top_k_negative", [](ValidCall& c) { c.args.top_k = -8; }, "align: top_k is -8,", "1 to 2147483647"},
    {"num_tokens_negative", [](ValidCall& c) { c.args.num_tokens = -1; }, "align: num_tokens is -1,",
     "0 to 1073741823"},
    {"num_tokens_beyond_int32_pairs", [](ValidCall& c) { c.args.num_tokens = 1'073'741'824; },
     "align: num_tokens is 1073741824,", "0 to 1073741823"},
    {"num_tokens_far_beyond", [](ValidCall& c) { c.args.num_tokens = LLONG_MAX; },
     "align: num_tokens is 9223372036854775807,", "0 to 1073741823"},
    {"num_experts_zero", [](ValidCall& c) { c.args.num_experts = 0; }, "align: num_experts is 0,",
     "1 to 4096"},
    {"num_experts_too_many", [](ValidCall& c) { c.args.num_experts = 4097; }, "align: num_experts is 4097,",
     "1 to 4096"},
    {"first_id_with_a_map",
     [](ValidCall& c) {
       c.with_map();
       c.args.first_id = -1;
     },
     "align: first_id is -1,", "0 with an expert_map"},
    {"first_id_below_int32", [](ValidCall& c) { c.args.first_id = -2'147'483'649; },
     "align: first_id is -2147483649,", "-2147483648 to "},
    {"first_id_whose_last_expert_is_beyond_int32", [](ValidCall& c) { c.args.first_id = INT_MAX; },
     "align: first_id is 2147483647,", "-2147483648 to "},
    {"block_size_zero", [](ValidCall& c) { c.args.block_size = 0; }, "align: block_size is 0,",
     "1 to 2147483647"},
    {"block_size_negative", [](ValidCall& c) { c.args.block_size = INT_MIN; },
     "align: block_size is -2147483648,", "1 to 2147483647"},
    {"linked", [](ValidCall& c) { c.args.linked = 7; }, "align: linked is 7,", "0 to 1"},
    {"row_stride_below_top_k", [](ValidCall& c) { c.args.row_stride = 1; }, "align: row_stride is 1,",
     "2 to "},
    {"row_stride_negative", [](ValidCall& c) { c.args.row_stride = -2; }, "align: row_stride is -2,",
     "2 to "},
    {"row_stride_too_large", [](ValidCall& c) { c.args.row_stride = LLONG_MAX; },
     "align: row_stride is 9223372036854775807,", "2 to "},
    {"num_local_experts_zero",
     [](ValidCall& c) {
       c.with_map();
       c.args.num_local_experts = 0;
     },
     "align: num_local_experts is 0,", "1 to 4096"},
    {"num_local_experts_too_many",
     [](ValidCall& c) {
       c.with_map();
       c.args.num_local_experts = 4097;
     },
     "align: num_local_experts is 4097,", "1 to 4096"},
    {"path_negative", [](ValidCall& c) { c.args.path = -1; }, "align: path is -1,", "a ty_align_path"},
    {"path_unknown", [](ValidCall& c) { c.args.path = 4; }, "align: path is 4,", "a ty_align_path"},
    {"capacity_negative", [](ValidCall& c) { c.args.capacity = -1; }, "align: capacity is -1,",
     "32 to 2147483647"},
    {"capacity_one_short", [](ValidCall& c) { c.args.capacity = 31; }, "align: capacity is 31,",
     "32 to 2147483647"},
    {"capacity_beyond_int32", [](ValidCall& c) { c.args.capacity = 2'147'483'648; },
     "align: capacity is 2147483648,", "32 to 2147483647"},
    {"slots_beyond_int32",
     [](ValidCall& c) {
       c.args.block_size = INT_MAX / 2;
       c.args.capacity = INT_MAX;
     },
     "align: 8 pairs of 8 experts in blocks of 1073741823 may need more than 2147483647 slots,",
     "positions that fit in int32"},
};
INSTANTIATE_TEST_SUITE_P(Align, Refusals, testing::ValuesIn(kShapes),
                         [](const auto& info) { return info.param.name; });

// The size query and the explanation know no pointers.
TEST_P(PointerRefusals, NameTheArgument) {
  const Refusal& refusal = GetParam();
  ValidCall call;
  refusal.break_it(call);
  expect_refusal(ty_align(kCpu, &call.args, nullptr, nullptr), TY_INVALID_ARGUMENT, refusal.begins,
                 refusal.expected);
}

template <class T>
T* odd(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + 2);
}

const Refusal kPointers[] = {
    {"topk_ids_null", [](ValidCall& c) { c.args.topk_ids = nullptr; }, "align: topk_ids is NULL,",
     "a pointer"},
    {"sorted_pair_ids_null", [](ValidCall& c) { c.args.sorted_pair_ids = nullptr; },
     "align: sorted_pair_ids is NULL,", "a pointer"},
    {"block_expert_null", [](ValidCall& c) { c.args.block_expert = nullptr; }, "align: block_expert is NULL,",
     "a pointer"},
    {"num_padded_null", [](ValidCall& c) { c.args.num_padded = nullptr; }, "align: num_padded is NULL,",
     "a pointer"},
    {"topk_ids_odd", [](ValidCall& c) { c.args.topk_ids = odd(c.ids.data()); },
     "align: topk_ids is at address 0x", "a multiple of 4"},
    {"topk_ids_int64_at_half",
     [](ValidCall& c) {
       c.args.ids_dtype = TY_INT64;
       c.args.topk_ids = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(c.ids.data()) / 8 * 8 + 4);
     },
     "align: topk_ids is at address 0x", "a multiple of 8"},
    {"expert_map_odd",
     [](ValidCall& c) {
       c.with_map();
       c.args.expert_map = odd(c.expert_map.data());
     },
     "align: expert_map is at address 0x", "a multiple of 4"},
    {"sorted_pair_ids_odd", [](ValidCall& c) { c.args.sorted_pair_ids = odd(c.args.sorted_pair_ids); },
     "align: sorted_pair_ids is at address 0x", "a multiple of 4"},
    {"block_expert_odd", [](ValidCall& c) { c.args.block_expert = odd(c.args.block_expert); },
     "align: block_expert is at address 0x", "a multiple of 4"},
    {"num_padded_odd", [](ValidCall& c) { c.args.num_padded = odd(c.args.num_padded); },
     "align: num_padded is at address 0x", "a multiple of 4"},
    {"counts_odd", [](ValidCall& c) { c.args.counts = odd(c.ids.data()); }, "align: counts is at address 0x",
     "a multiple of 4"},
    {"offsets_odd", [](ValidCall& c) { c.args.offsets = odd(c.ids.data()); },
     "align: offsets is at address 0x", "a multiple of 4"},
    {"inverse_odd", [](ValidCall& c) { c.args.inverse = odd(c.ids.data()); },
     "align: inverse is at address 0x", "a multiple of 4"},
    {"block_rows_odd", [](ValidCall& c) { c.args.block_rows = odd(c.ids.data()); },
     "align: block_rows is at address 0x", "a multiple of 4"},
    {"num_dropped_odd", [](ValidCall& c) { c.args.num_dropped = odd(c.ids.data()); },
     "align: num_dropped is at address 0x", "a multiple of 4"},
};
INSTANTIATE_TEST_SUITE_P(Align, PointerRefusals, testing::ValuesIn(kPointers),
                         [](const auto& info) { return info.param.name; });

TEST(ArgumentErrors, NoArgs) {
  expect_refusal(ty_align(kCpu, nullptr, nullptr, nullptr), TY_INVALID_ARGUMENT, "align: args is NULL,",
                 "a ty_align_args");
}

TEST(ArgumentErrors, SizeQueryWithoutAPlaceForTheSize) {
  ValidCall call;
  expect_refusal(ty_align_workspace_size(kCpu, &call.args, nullptr), TY_INVALID_ARGUMENT,
                 "align_workspace_size: bytes is NULL,",
                 "where to put the size: pass the address of a size_t");
}

TEST(ArgumentErrors, TextWithoutABuffer) {
  ValidCall call;
  char text[8];
  expect_refusal(ty_align_explain(kCpu, &call.args, nullptr, 100), TY_INVALID_ARGUMENT,
                 "align_explain: text is ", "room for at least one");
  expect_refusal(ty_align_explain(kCpu, &call.args, text, 0), TY_INVALID_ARGUMENT, "align_explain: text is ",
                 "room for at least one");
  expect_refusal(ty_device_describe(kCpu, nullptr, 100), TY_INVALID_ARGUMENT, "device_describe: text is ",
                 "room for at least one");
}

TEST(DeviceErrors, UnknownBackend) {
  ValidCall call;
  size_t bytes = 0;
  char text[100];
  const ty_device device{9, 0};
  const auto refused = [](ty_status status) {
    expect_refusal(status, TY_INVALID_ARGUMENT, "device: backend is 9,", "TY_CPU, TY_CUDA or TY_HIP");
  };
  refused(ty_align(device, &call.args, nullptr, nullptr));
  refused(ty_align_workspace_size(device, &call.args, &bytes));
  refused(ty_align_explain(device, &call.args, text, sizeof text));
  refused(ty_device_describe(device, text, sizeof text));
  EXPECT_EQ(ty_device_count(9), 0);
  refused(TY_INVALID_ARGUMENT);  // what ty_device_count() left as the last error
}

TEST(DeviceErrors, OrdinalThatIsNotThere) {
  ValidCall call;
  for (const int32_t ordinal : {-1, 1}) {
    expect_refusal(ty_align({TY_CPU, ordinal}, &call.args, nullptr, nullptr), TY_INVALID_ARGUMENT,
                   "device: ordinal is " + std::to_string(ordinal) + ",", "0 to 0");
  }
}

TEST(DeviceErrors, BackendThatIsNotThere) {
  for (const auto& [id, name] : {std::pair{TY_CUDA, "cuda"}, std::pair{TY_HIP, "hip"}}) {
    if (ty_device_count(id) > 0) continue;
    ValidCall call;
    const std::string begins = find_backend(id) == nullptr
                                   ? std::string("device: this build has no backend ") + name
                                   : std::string("device: no ") + name + " device answers";
    expect_refusal(ty_align({id, 0}, &call.args, nullptr, nullptr), TY_UNSUPPORTED, begins, "");
  }
}

}  // namespace
}  // namespace tokenyard::test
