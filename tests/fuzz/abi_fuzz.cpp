// libFuzzer on the C ABI: whatever the arguments, a call is refused with a sentence, or stays inside the
// memory that they describe (AddressSanitizer watches) and leaves an order that a matrix product may trust.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "source.hpp"
#include "tokenyard/tokenyard.h"
#include "training.hpp"

using namespace tokenyard::fuzz;

namespace {

bool fits(const ty_align_args& args) {
  const int64_t stride = args.row_stride == 0 ? args.top_k : args.row_stride;
  return args.num_tokens >= 0 && args.num_tokens <= 4096 && args.top_k >= 1 && args.top_k <= 64 &&
         stride >= 0 && stride <= 256 && args.num_experts >= 1 && args.num_experts <= 4096 &&
         args.num_local_experts <= 4096 && args.block_size >= 1 && args.capacity >= 0 &&
         args.capacity <= 1 << 20;
}

void check_order(const ty_align_args& args, int32_t experts) {
  const int64_t pairs = args.num_tokens * args.top_k;
  const int64_t blocks = (args.capacity + args.block_size - 1) / args.block_size;
  const int32_t padded = *args.num_padded;
  require(padded >= 0 && padded <= args.capacity && padded % args.block_size == 0, "num_padded");
  for (int64_t i = 0; i < args.capacity; ++i) {
    const int32_t pair = args.sorted_pair_ids[i];
    require(pair >= 0 && pair <= pairs && (i < padded || pair == pairs), "sorted_pair_ids");
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t expert = args.block_expert[b] - args.first_id;
    const bool used = b * args.block_size < padded;
    require(used ? expert >= 0 && expert < experts : args.block_expert[b] == -1, "block_expert");
  }
}

void call_align(ty_device device, ty_align_args args, Source& source) {
  const int64_t rows = args.num_tokens;
  const int64_t stride = args.row_stride == 0 ? args.top_k : args.row_stride;
  const int64_t ids = rows == 0 ? 0 : (rows - 1) * stride + args.top_k;
  const int64_t blocks = (args.capacity + args.block_size - 1) / args.block_size;
  const int64_t experts =
      args.num_experts > args.num_local_experts ? args.num_experts : args.num_local_experts;

  const Buffer<int32_t> narrow(source, ids, false);
  const Buffer<int64_t> wide(source, ids, false);
  const Buffer<int32_t> map(source, args.num_experts, true), sorted(source, args.capacity, false);
  const Buffer<int32_t> block_expert(source, blocks, false), num_padded(source, 1, false);
  const Buffer<int32_t> counts(source, experts, true), offsets(source, experts + 1, true);
  const Buffer<int32_t> inverse(source, rows * args.top_k, true), block_rows(source, blocks, true);
  const Buffer<int32_t> num_dropped(source, 1, true);

  const bool is_wide = args.ids_dtype == TY_INT64;
  args.topk_ids = is_wide ? static_cast<const void*>(wide.get()) : narrow.get();
  args.expert_map = map.get();
  args.sorted_pair_ids = sorted.get();
  args.block_expert = block_expert.get();
  args.num_padded = num_padded.get();
  args.counts = counts.get();
  args.offsets = offsets.get();
  args.inverse = inverse.get();
  args.block_rows = block_rows.get();
  args.num_dropped = num_dropped.get();

  if (args.topk_ids != nullptr) {
    auto* bytes = static_cast<char*>(const_cast<void*>(args.topk_ids));
    const size_t size = is_wide ? sizeof(int64_t) : sizeof(int32_t);
    for (int64_t i = 0; i < ids; ++i) {
      const int64_t id = source.number<int64_t>(-1, args.num_experts);
      std::memcpy(bytes + static_cast<size_t>(i) * size, &id, size);
    }
  }
  if (args.expert_map != nullptr) {
    auto* bytes = reinterpret_cast<char*>(const_cast<int32_t*>(args.expert_map));
    for (int64_t i = 0; i < args.num_experts; ++i) {
      const int32_t local = source.number<int32_t>(-1, 64);
      std::memcpy(bytes + static_cast<size_t>(i) * sizeof local, &local, sizeof local);
    }
  }

  const ty_status status = ty_align(device, &args, nullptr, nullptr);
  const std::string error = ty_last_error();
  require((status == TY_OK) == error.empty(), "a refusal says why, a success says nothing");
  if (status == TY_OK)
    check_order(args, args.expert_map == nullptr ? args.num_experts : args.num_local_experts);
}

void fuzz_align(ty_device device, Source& source) {
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  if (source.take<uint8_t>() >= 240) args.struct_size = source.number<uint32_t>(0, 2 * sizeof args);
  args.ids_dtype = source.number<int32_t>(0, 1);
  args.num_tokens = source.number<int64_t>(1, 300);
  args.row_stride = source.number<int64_t>(0, 3) == 1 ? source.number<int64_t>(0, 100) : 0;
  args.top_k = source.number<int32_t>(1, 12);
  args.num_experts = source.number<int32_t>(1, 300);
  args.block_size = source.number<int32_t>(1, 200);
  args.num_local_experts = source.number<int32_t>(1, 64);
  args.path = source.number<int32_t>(0, 3);
  args.linked = source.number<int32_t>(0, 1);
  args.first_id = source.take<uint8_t>() < 64 ? source.number<int64_t>(-5, 5) : 0;
  const bool generous = source.take<uint8_t>() % 4 != 0;
  args.capacity =
      generous ? ty_align_capacity(
                     args.num_tokens >= 0 && args.num_tokens < 1 << 20 ? args.num_tokens * args.top_k : -1,
                     args.num_experts > args.num_local_experts ? args.num_experts : args.num_local_experts,
                     args.block_size)
               : source.number<int64_t>(0, 65535);

  // Sizes are asked with any numbers and no memory at all.
  size_t bytes = 0;
  char text[64];
  for (const ty_status status :
       {ty_align_workspace_size(device, &args, &bytes), ty_align_once_size(device, &args, &bytes),
        ty_align_explain(device, &args, text, sizeof text)}) {
    require(status >= TY_OK && status <= TY_OUT_OF_MEMORY, "status");
  }
  if (fits(args)) call_align(device, args, source);
}

bool fits(const ty_gate_args& args) {
  const int64_t stride = args.row_stride == 0 ? args.num_experts : args.row_stride;
  return args.num_tokens >= 0 && args.num_tokens <= 256 && args.num_experts >= 1 && args.num_experts <= 512 &&
         stride >= 0 && stride <= 1024 && args.top_k >= 1 && args.top_k <= 64 &&
         args.num_shared_experts >= 0 && args.num_shared_experts <= 64 && args.max_replicas >= 0 &&
         args.max_replicas <= 8 && args.num_physical_experts >= 0 && args.num_physical_experts <= 8192;
}

// Distinct experts, and weights that are numbers.
void check_choice(const ty_gate_args& args) {
  const int64_t columns = args.top_k + args.num_shared_experts;
  for (int64_t i = 0; i < args.num_tokens * columns; ++i) {
    require(args.weights[i] == args.weights[i], "a weight is NaN");
  }
  if (args.replicas != nullptr || args.ids_dtype == TY_INT64) return;
  const auto* ids = static_cast<const int32_t*>(args.ids);
  for (int64_t token = 0; token < args.num_tokens; ++token, ids += columns) {
    for (int32_t k = 0; k < args.top_k; ++k) {
      require(ids[k] >= -1 && ids[k] < args.num_experts, "ids");
      for (int32_t other = 0; other < k && ids[k] >= 0; ++other)
        require(ids[other] != ids[k], "distinct ids");
    }
  }
}

void call_gate(ty_device device, ty_gate_args args, Source& source) {
  const int64_t stride = args.row_stride == 0 ? args.num_experts : args.row_stride;
  const int64_t logits = args.num_tokens == 0 ? 0 : (args.num_tokens - 1) * stride + args.num_experts;
  const int64_t outputs = args.num_tokens * (args.top_k + args.num_shared_experts);
  const int64_t table = int64_t{args.num_experts} * args.max_replicas;

  const Buffer<uint32_t> wide(source, logits, false), wide_bias(source, args.num_experts, true);
  const Buffer<uint16_t> narrow(source, logits, false), narrow_bias(source, args.num_experts, true);
  const Buffer<int32_t> replicas(source, table, true), num_replicas(source, args.num_experts, true);
  const Buffer<int32_t> num_real_tokens(source, 1, true);
  const Buffer<int32_t> ids(source, outputs, false);
  const Buffer<int64_t> wide_ids(source, outputs, false);
  const Buffer<float> weights(source, outputs, false);
  const Buffer<int32_t> counts(source, args.num_experts, true);
  const Buffer<int32_t> physical_counts(source, args.num_physical_experts, true);
  fill(source, wide.get(), logits);
  fill(source, narrow.get(), logits);
  fill(source, wide_bias.get(), args.num_experts);
  fill(source, narrow_bias.get(), args.num_experts);
  fill(source, replicas.get(), table);
  fill(source, num_replicas.get(), args.num_experts);
  fill(source, num_real_tokens.get(), 1);

  const bool is_wide = args.logits_dtype == TY_FLOAT32;
  args.logits = is_wide ? static_cast<const void*>(wide.get()) : narrow.get();
  args.bias = args.bias_dtype == TY_FLOAT32 ? static_cast<const void*>(wide_bias.get()) : narrow_bias.get();
  args.replicas = replicas.get();
  args.num_replicas = num_replicas.get();
  args.num_real_tokens = num_real_tokens.get();
  args.ids = args.ids_dtype == TY_INT64 ? static_cast<void*>(wide_ids.get()) : ids.get();
  args.weights = weights.get();
  args.counts = counts.get();
  args.physical_counts = physical_counts.get();

  const ty_status status = ty_gate(device, &args, nullptr);
  const std::string error = ty_last_error();
  require((status == TY_OK) == error.empty(), "a refusal says why, a success says nothing");
  if (status == TY_OK) check_choice(args);
}

void fuzz_gate(ty_device device, Source& source) {
  ty_gate_args args = TY_GATE_ARGS_INIT;
  if (source.take<uint8_t>() >= 240) args.struct_size = source.number<uint32_t>(0, 2 * sizeof args);
  args.logits_dtype = source.number<int32_t>(2, 4);
  args.num_tokens = source.number<int64_t>(1, 20);
  args.row_stride = source.number<int64_t>(0, 3) == 1 ? source.number<int64_t>(0, 300) : 0;
  args.num_experts = source.number<int32_t>(1, 64);
  args.top_k = source.number<int32_t>(1, 8);
  args.score = source.number<int32_t>(0, 2);
  args.weight_mode = source.number<int32_t>(0, 2);
  args.bias_dtype = source.number<int32_t>(2, 4);
  args.num_groups = source.number<int32_t>(0, 3) == 1 ? source.number<int32_t>(0, 8) : 0;
  args.kept_groups = source.number<int32_t>(1, 4);
  args.group_score = source.number<int32_t>(0, 1);
  if (source.take<uint8_t>() >= 128) args.epsilon = source.take<float>();
  if (source.take<uint8_t>() >= 192) args.scale = source.take<float>();
  args.num_shared_experts = source.number<int32_t>(0, 2);
  args.shared_mode = source.number<int32_t>(0, 1);
  args.max_replicas = source.number<int32_t>(1, 4);
  args.num_physical_experts = source.number<int32_t>(1, 256);
  args.ids_dtype = source.number<int32_t>(0, 1);
  args.lanes = source.number<int32_t>(0, 64);
  char text[64];
  const ty_status status = ty_gate_explain(device, &args, text, sizeof text);
  require(status >= TY_OK && status <= TY_OUT_OF_MEMORY, "status");
  if (fits(args)) call_gate(device, args, source);
}

// What is not read of align's arguments is anything; what gate checks, gate's calls of the fuzzer reach.
void fuzz_route(ty_device device, Source& source) {
  ty_gate_args gate = TY_GATE_ARGS_INIT;
  gate.num_tokens = source.number<int64_t>(0, 20);
  gate.num_experts = source.number<int32_t>(1, 64);
  gate.top_k = source.number<int32_t>(1, 8);
  gate.num_shared_experts = source.number<int32_t>(0, 2);
  gate.ids_dtype = source.number<int32_t>(0, 1);
  ty_align_args align = TY_ALIGN_ARGS_INIT;
  align.ids_dtype = source.take<int32_t>();
  align.num_tokens = source.take<int64_t>();
  align.row_stride = source.take<int64_t>();
  align.top_k = source.take<int32_t>();
  align.num_experts = source.take<int32_t>();
  align.block_size = source.number<int32_t>(1, 200);
  align.capacity = source.number<int64_t>(0, 65535);
  align.first_id = source.take<int64_t>();
  ty_route_args args = TY_ROUTE_ARGS_INIT;
  if (source.take<uint8_t>() >= 240) args.struct_size = source.number<uint32_t>(0, 2 * sizeof args);
  args.path = source.number<int32_t>(0, 2);
  args.gate = source.take<uint8_t>() >= 250 ? nullptr : &gate;
  args.align = source.take<uint8_t>() >= 250 ? nullptr : &align;
  size_t bytes = 0;
  char text[64];
  for (const ty_status status :
       {ty_route_workspace_size(device, &args, &bytes), ty_route_once_size(device, &args, &bytes),
        ty_route_explain(device, &args, text, sizeof text)}) {
    require(status >= TY_OK && status <= TY_OUT_OF_MEMORY, "status");
  }
  const bool is_small = gate.num_tokens <= 256 && gate.num_experts <= 512 && gate.num_experts >= 1 &&
                        gate.num_shared_experts <= 64 && align.capacity <= 1 << 20 && align.block_size >= 1;
  if (!is_small || gate.num_tokens < 0 || gate.top_k < 1 || gate.top_k > 64 || align.capacity < 0) return;

  const int64_t logits = gate.num_tokens * gate.num_experts;
  const int64_t ids =
      gate.num_tokens * (gate.top_k + (gate.num_shared_experts < 0 ? 0 : gate.num_shared_experts));
  const int64_t blocks = (align.capacity + align.block_size - 1) / align.block_size;
  const Buffer<uint32_t> numbers(source, logits, false);
  const Buffer<int64_t> chosen(source, ids, false);
  const Buffer<float> weights(source, ids, false);
  const Buffer<int32_t> sorted(source, align.capacity, false), block_expert(source, blocks, false);
  const Buffer<int32_t> num_padded(source, 1, false);
  fill(source, numbers.get(), logits);
  gate.logits = numbers.get();
  gate.ids = chosen.get();
  gate.weights = weights.get();
  align.sorted_pair_ids = sorted.get();
  align.block_expert = block_expert.get();
  align.num_padded = num_padded.get();
  const bool once = source.take<uint8_t>() % 2 == 0;  // in memory of its own, of which the CPU needs none
  const ty_status status =
      once ? ty_route_once(device, &args, nullptr, 0, nullptr) : ty_route(device, &args, nullptr, nullptr);
  const std::string error = ty_last_error();
  require((status == TY_OK) == error.empty(), "a refusal says why, a success says nothing");
  if (status != TY_OK) return;
  align.first_id = 0;
  align.num_tokens = gate.num_tokens;
  align.top_k = gate.top_k + gate.num_shared_experts;
  check_order(align, gate.num_experts + gate.num_shared_experts);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Source source(data, size);
  const ty_device device{source.number<int32_t>(0, 0), source.number<int32_t>(0, 0)};
  switch (source.take<uint8_t>() % 6) {
    case 0:
      fuzz_align(device, source);
      break;
    case 1:
      fuzz_gate(device, source);
      break;
    case 2:
      fuzz_backward(device, source);
      break;
    case 3:
      fuzz_loss(device, source);
      break;
    case 4:
      fuzz_route(device, source);
      break;
    default:
      fuzz_balance(device, source);
  }
  return 0;
}
