// Schemas, and the functions behind them: the same ones on the CPU and on CUDA.
#include <torch/csrc/stable/library.h>

#include "operators.hpp"

using namespace tokenyard::torch_binding;

STABLE_TORCH_LIBRARY(tokenyard, library) {
  library.def(
      "align(Tensor topk_ids, int num_experts, int block_size, Tensor? expert_map=None, "
      "int? num_local_experts=None) -> (Tensor sorted_pair_ids, Tensor block_expert, Tensor num_padded)");
  library.def(
      "align_with_details(Tensor topk_ids, int num_experts, int block_size, Tensor? expert_map=None, "
      "int? num_local_experts=None) -> (Tensor sorted_pair_ids, Tensor block_expert, Tensor num_padded, "
      "Tensor counts, Tensor offsets, Tensor inverse, Tensor block_rows, Tensor num_dropped)");
  library.def(
      "align_out(Tensor topk_ids, int num_experts, int block_size, Tensor? expert_map, "
      "int? num_local_experts, Tensor(a!) sorted_pair_ids, Tensor(b!) block_expert, "
      "Tensor(c!) num_padded) -> ()");
}

namespace {

void implement(torch::stable::detail::StableLibrary& library) {
  library.impl("align", TORCH_BOX(&align));
  library.impl("align_with_details", TORCH_BOX(&align_with_details));
  library.impl("align_out", TORCH_BOX(&align_out));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(tokenyard, CPU, library) { implement(library); }
STABLE_TORCH_LIBRARY_IMPL(tokenyard, CUDA, library) { implement(library); }
