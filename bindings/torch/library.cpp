// Schemas, and the functions behind them: the same ones on the CPU and on CUDA.
#include <torch/csrc/stable/library.h>

#include <string>

#include "align.hpp"
#include "gate.hpp"

using namespace tokenyard::torch_binding;

STABLE_TORCH_LIBRARY(tokenyard, library) {
  const std::string ids =
      "Tensor topk_ids, int num_experts, int block_size, Tensor? expert_map=None, int? "
      "num_local_experts=None";
  const std::string order = "Tensor sorted_pair_ids, Tensor block_expert, Tensor num_padded";
  library.def(("align(" + ids + ") -> (" + order + ")").c_str());
  library.def(("align_with_details(" + ids + ") -> (" + order +
               ", Tensor counts, Tensor offsets, Tensor inverse, Tensor block_rows, Tensor num_dropped)")
                  .c_str());
  library.def(("align_out(" + ids +
               ", *, Tensor(a!) sorted_pair_ids, Tensor(b!) block_expert, Tensor(c!) num_padded) -> ()")
                  .c_str());

  const std::string logits =
      "Tensor logits, int top_k, Tensor? bias=None, str score=\"softmax\", str weight_mode=\"raw\", "
      "int num_groups=0, int kept_groups=0, str group_score=\"max\", float epsilon=0, float scale=1, "
      "int num_shared_experts=0, str shared_mode=\"fixed\", float shared_weight=1, Tensor? replicas=None, "
      "Tensor? num_replicas=None, int num_physical_experts=0, Tensor? num_real_tokens=None";
  const std::string as_type = ", ScalarType? ids_dtype=None";
  library.def(("gate(" + logits + as_type + ") -> (Tensor ids, Tensor weights)").c_str());
  library.def(("gate_with_counts(" + logits + as_type +
               ") -> (Tensor ids, Tensor weights, Tensor counts, Tensor physical_counts)")
                  .c_str());
  library.def(("gate_out(" + logits + ", *, Tensor(a!) ids, Tensor(b!) weights) -> ()").c_str());
}

namespace {

void implement(torch::stable::detail::StableLibrary& library) {
  library.impl("align", TORCH_BOX(&align));
  library.impl("align_with_details", TORCH_BOX(&align_with_details));
  library.impl("align_out", TORCH_BOX(&align_out));
  library.impl("gate", TORCH_BOX(&Gates::gate));
  library.impl("gate_with_counts", TORCH_BOX(&Gates::gate_with_counts));
  library.impl("gate_out", TORCH_BOX(&Gates::gate_out));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(tokenyard, CPU, library) { implement(library); }
STABLE_TORCH_LIBRARY_IMPL(tokenyard, CUDA, library) { implement(library); }
