// Calls of the router's training: refused with a sentence, or inside the memory that they describe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "source.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::fuzz {

// The fields that backward and losses share: shapes that gate takes, too.
template <class Args>
void draw_rows(Source& source, Args& args) {
  if (source.take<uint8_t>() >= 240) args.struct_size = source.number<uint32_t>(0, 2 * sizeof args);
  args.logits_dtype = source.number<int32_t>(2, 4);
  args.num_tokens = source.number<int64_t>(0, 40);
  args.row_stride = source.number<int64_t>(0, 3) == 1 ? source.number<int64_t>(0, 300) : 0;
  args.num_experts = source.number<int32_t>(1, 64);
  args.top_k = source.number<int32_t>(1, 8);
  args.score = source.number<int32_t>(0, 2);
  args.ids_dtype = source.number<int32_t>(0, 1);
}

template <class Args>
bool rows_fit(const Args& args) {
  const int64_t stride = args.row_stride == 0 ? args.num_experts : args.row_stride;
  return args.num_tokens >= 0 && args.num_tokens <= 256 && args.num_experts >= 1 && args.num_experts <= 512 &&
         stride >= 0 && stride <= 1024 && args.top_k >= 1 && args.top_k <= 64;
}

inline void require_a_sentence(ty_status status) {
  const std::string error = ty_last_error();
  require((status == TY_OK) == error.empty(), "a refusal says why, a success says nothing");
}

// Memory for logits, ids and gradients of either operation, each of the type that the call says.
struct Rows {
  template <class Args>
  Rows(Source& source, const Args& args, int64_t columns)
      : logits(args.num_tokens == 0
                   ? 0
                   : (args.num_tokens - 1) * (args.row_stride == 0 ? args.num_experts : args.row_stride) +
                         args.num_experts),
        numbers(args.num_tokens * args.num_experts),
        wide(source, logits, false),
        narrow(source, logits, false),
        ids(source, args.num_tokens * columns, false),
        wide_ids(source, args.num_tokens * columns, false),
        wide_grad(source, numbers, false),
        narrow_grad(source, numbers, false) {
    fill(source, wide.get(), logits);
    fill(source, narrow.get(), logits);
    fill(source, ids.get(), args.num_tokens * columns);
    fill(source, wide_ids.get(), args.num_tokens * columns);
  }

  template <class Args>
  void set(Args& args) const {
    const bool is_wide = args.logits_dtype == TY_FLOAT32;
    args.logits = is_wide ? static_cast<const void*>(wide.get()) : narrow.get();
    args.logits_grad = is_wide ? static_cast<void*>(wide_grad.get()) : narrow_grad.get();
    args.ids = args.ids_dtype == TY_INT64 ? static_cast<const void*>(wide_ids.get()) : ids.get();
  }

  const int64_t logits, numbers;
  const Buffer<uint32_t> wide;
  const Buffer<uint16_t> narrow;
  const Buffer<int32_t> ids;
  const Buffer<int64_t> wide_ids;
  const Buffer<float> wide_grad;
  const Buffer<uint16_t> narrow_grad;
};

inline void fuzz_backward(ty_device device, Source& source) {
  ty_gate_backward_args args = TY_GATE_BACKWARD_ARGS_INIT;
  draw_rows(source, args);
  args.weight_mode = source.number<int32_t>(0, 2);
  if (source.take<uint8_t>() >= 128) args.epsilon = source.take<float>();
  args.num_shared_experts = source.number<int32_t>(0, 2);
  if (!rows_fit(args) || args.num_shared_experts < 0 || args.num_shared_experts > 64) return;
  const int64_t columns = args.top_k + args.num_shared_experts;
  const Rows rows(source, args, columns);
  const Buffer<float> weights_grad(source, args.num_tokens * columns, false);
  fill(source, weights_grad.get(), args.num_tokens * columns);
  rows.set(args);
  args.weights_grad = weights_grad.get();
  require_a_sentence(ty_gate_backward(device, &args, nullptr));
}

inline void fuzz_loss(ty_device device, Source& source) {
  ty_router_loss_args args = TY_ROUTER_LOSS_ARGS_INIT;
  draw_rows(source, args);
  args.balance_coefficient = source.take<float>();
  args.z_coefficient = source.take<float>();
  args.num_sequences = source.number<int32_t>(1, 5);
  args.num_columns = source.number<int32_t>(1, 10);
  if (!rows_fit(args) || args.num_sequences < 1 || args.num_sequences > 64 || args.num_columns < 1 ||
      args.num_columns > 256) {
    return;
  }
  const Rows rows(source, args, args.num_columns);
  const Buffer<int32_t> offsets(source, args.num_sequences + 1, true);
  const Buffer<int32_t> counts(source, int64_t{args.num_sequences} * args.num_experts, false);
  const Buffer<float> losses(source, 2, false);
  const Buffer<float> scratch(source, 2 * ((args.num_tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN),
                              false);
  fill(source, offsets.get(), args.num_sequences + 1);
  fill(source, counts.get(), int64_t{args.num_sequences} * args.num_experts);
  rows.set(args);
  if (source.take<uint8_t>() % 2 == 0) args.ids = nullptr;
  args.sequence_offsets = offsets.get();
  args.counts = counts.get();
  args.losses = losses.get();
  args.scratch = scratch.get();
  require_a_sentence(ty_router_loss(device, &args, nullptr));
}

inline void fuzz_balance(ty_device device, Source& source) {
  ty_balance_args args = TY_BALANCE_ARGS_INIT;
  if (source.take<uint8_t>() >= 240) args.struct_size = source.number<uint32_t>(0, 2 * sizeof args);
  args.num_experts = source.number<int32_t>(1, 300);
  args.rate = source.take<float>();
  args.counts_dtype = source.number<int32_t>(0, 1);
  if (args.num_experts < 0 || args.num_experts > 8192) return;
  const Buffer<uint32_t> counts(source, args.num_experts, false);
  const Buffer<uint64_t> wide_counts(source, args.num_experts, false);
  const Buffer<float> bias(source, args.num_experts, true), statistics(source, 4, true);
  for (int32_t e = 0; e < args.num_experts; ++e) {
    // Counts are not negative, and their sum is an int64.
    const uint32_t count = source.take<uint32_t>() / 2;
    const uint64_t wide_count = uint64_t{count} << 18;
    if (counts.get() != nullptr) std::memcpy(reinterpret_cast<char*>(counts.get()) + e * 4, &count, 4);
    if (wide_counts.get() != nullptr) {
      std::memcpy(reinterpret_cast<char*>(wide_counts.get()) + e * 8, &wide_count, 8);
    }
  }
  args.counts = args.counts_dtype == TY_INT64 ? static_cast<const void*>(wide_counts.get()) : counts.get();
  args.bias = bias.get();
  args.statistics = statistics.get();
  require_a_sentence(ty_balance(device, &args, nullptr));
}

}  // namespace tokenyard::fuzz
