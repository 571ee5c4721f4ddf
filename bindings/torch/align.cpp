#include "align.hpp"

#include "arguments/align.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::torch_binding {
namespace {

class Align {
 public:
  Align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
        const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts)
      : place_(topk_ids),
        args_(binding::arguments(
            {view(topk_ids), num_experts, block_size, view(expert_map), num_local_experts})) {}

  void set_capacity() {
    args_.capacity =
        ty_align_capacity(args_.num_tokens * args_.top_k, binding::experts(args_), args_.block_size);
    // With arguments that have no capacity nothing is allocated: the library says what is wrong with them.
    if (args_.capacity < 0) run();
  }

  Tensor sorted_pair_ids() { return ints(args_.sorted_pair_ids, {args_.capacity}); }
  Tensor block_expert() { return ints(args_.block_expert, {args_.capacity / args_.block_size}); }
  Tensor num_padded() { return ints(args_.num_padded, {1}); }
  Tensor counts() { return ints(args_.counts, {binding::experts(args_)}); }
  Tensor offsets() { return ints(args_.offsets, {int64_t{binding::experts(args_)} + 1}); }
  Tensor inverse() { return ints(args_.inverse, {args_.num_tokens, args_.top_k}); }
  Tensor block_rows() { return ints(args_.block_rows, {args_.capacity / args_.block_size}); }
  Tensor num_dropped() { return ints(args_.num_dropped, {1}); }

  void write_to(const binding::AlignOutputs& outputs) { binding::write_to(args_, outputs, place_.device()); }

  void run() {
    binding::run(place_.device(), args_, place_.stream(),
                 [&](int64_t bytes) { return place_.empty({bytes}, ScalarType::Byte); });
  }

 private:
  Tensor ints(int32_t*& output, std::initializer_list<int64_t> sizes) {
    const Tensor made = place_.empty(sizes, ScalarType::Int);
    output = static_cast<int32_t*>(made.mutable_data_ptr());
    return made;
  }

  Place place_;
  ty_align_args args_;
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> align(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
                                         const std::optional<Tensor>& expert_map,
                                         std::optional<int64_t> num_local_experts) {
  Align call(topk_ids, num_experts, block_size, expert_map, num_local_experts);
  call.set_capacity();
  std::tuple order{call.sorted_pair_ids(), call.block_expert(), call.num_padded()};
  call.run();
  return order;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> align_with_details(
    const Tensor& topk_ids, int64_t num_experts, int64_t block_size, const std::optional<Tensor>& expert_map,
    std::optional<int64_t> num_local_experts) {
  Align call(topk_ids, num_experts, block_size, expert_map, num_local_experts);
  call.set_capacity();
  std::tuple order{call.sorted_pair_ids(), call.block_expert(), call.num_padded(), call.counts(),
                   call.offsets(),         call.inverse(),      call.block_rows(), call.num_dropped()};
  call.run();
  return order;
}

void align_out(const Tensor& topk_ids, int64_t num_experts, int64_t block_size,
               const std::optional<Tensor>& expert_map, std::optional<int64_t> num_local_experts,
               const Tensor& sorted_pair_ids, const Tensor& block_expert, const Tensor& num_padded) {
  Align call(topk_ids, num_experts, block_size, expert_map, num_local_experts);
  call.write_to({.sorted_pair_ids = view(sorted_pair_ids),
                 .block_expert = view(block_expert),
                 .num_padded = view(num_padded)});
  call.run();
}

}  // namespace tokenyard::torch_binding
