// A call of align, whose operators differ in their outputs alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "arguments/align.hpp"
#include "arguments/once.hpp"
#include "tensors.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::torch_binding {

// Where a call's memory comes from that is its own.
inline auto memory_of(const Place& place) {
  return [&place](int64_t bytes) { return place.empty({bytes}, ScalarType::Byte); };
}

class Align {
 public:
  Align(const Place& place, const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
        const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
        int64_t first_id = 0)
      : place_(place),
        args_(binding::arguments(
            {view(topk_ids), num_experts, block_size, view(expert_map), num_local_experts, first_id})) {}

  const ty_align_args& args() const { return args_; }

  void set_capacity() {
    args_.capacity =
        ty_align_capacity(args_.num_tokens * args_.top_k, binding::experts(args_), args_.block_size);
    // With arguments that have no capacity nothing is allocated: the library says what is wrong with them.
    if (args_.capacity < 0) run();
  }

  // New tensors, which the call then writes.
  Tensor sorted_pair_ids() { return ints(args_.sorted_pair_ids, {args_.capacity}); }
  Tensor block_expert() { return ints(args_.block_expert, {args_.capacity / args_.block_size}); }
  Tensor num_padded() { return ints(args_.num_padded, {1}); }
  Tensor counts() { return ints(args_.counts, {binding::experts(args_)}); }
  Tensor offsets() { return ints(args_.offsets, {int64_t{binding::experts(args_)} + 1}); }
  Tensor inverse() { return ints(args_.inverse, {args_.num_tokens, args_.top_k}); }
  Tensor block_rows() { return ints(args_.block_rows, {args_.capacity / args_.block_size}); }
  Tensor num_dropped() { return ints(args_.num_dropped, {1}); }

  void write_to(const binding::AlignOutputs& outputs) { binding::write_to(args_, outputs, place_.device()); }

  void run() const {
    binding::run_once(ty_align_once_size, ty_align_once, place_.device(), args_, place_.stream(),
                      memory_of(place_));
  }

 private:
  Tensor ints(int32_t*& output, std::initializer_list<int64_t> sizes) {
    const Tensor made = place_.empty(sizes, ScalarType::Int);
    output = static_cast<int32_t*>(made.mutable_data_ptr());
    return made;
  }

  const Place& place_;
  ty_align_args args_;
};

}  // namespace tokenyard::torch_binding
