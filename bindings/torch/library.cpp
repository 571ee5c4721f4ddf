// Schemas, and the functions behind them: the same ones on the CPU and on CUDA.
#include <torch/csrc/stable/library.h>

#include <string>

#include "align.hpp"
#include "gate.hpp"
#include "route.hpp"
#include "training.hpp"

using namespace tokenyard::torch_binding;

namespace {

void define(torch::stable::detail::StableLibrary& library, const std::string& name,
            const std::string& arguments, const std::string& results) {
  library.def((name + "(" + arguments + ") -> (" + results + ")").c_str());
}

}  // namespace

STABLE_TORCH_LIBRARY(tokenyard, library) {
  const std::string order_options = "Tensor? expert_map=None, int? num_local_experts=None";
  const std::string pairs =
      "Tensor topk_ids, int num_experts, int block_size, " + order_options + ", int first_id=0";
  const std::string order = "Tensor sorted_pair_ids, Tensor block_expert, Tensor num_padded";
  const std::string details =
      ", Tensor counts, Tensor offsets, Tensor inverse, Tensor block_rows, Tensor num_dropped";
  define(library, "align", pairs, order);
  define(library, "align_with_details", pairs, order + details);
  const std::string order_out =
      ", Tensor(a!) sorted_pair_ids, Tensor(b!) block_expert, Tensor(c!) num_padded";
  define(library, "align_out", pairs + ", *" + order_out, "");

  const std::string logits = "Tensor logits, int top_k, ";
  const std::string options =
      "Tensor? bias=None, str score=\"softmax\", str weight_mode=\"raw\", int num_groups=0, "
      "int kept_groups=0, str group_score=\"max\", float epsilon=0, float scale=1, "
      "int num_shared_experts=0, str shared_mode=\"fixed\", float shared_weight=1, Tensor? replicas=None, "
      "Tensor? num_replicas=None, int num_physical_experts=0, Tensor? num_real_tokens=None";
  const std::string as_type = ", ScalarType? ids_dtype=None";
  const std::string chosen = "Tensor ids, Tensor weights";
  const std::string counts = ", Tensor counts, Tensor physical_counts";
  const std::string chosen_out = ", *, Tensor(d!) ids, Tensor(e!) weights";
  define(library, "gate", logits + options + as_type, chosen);
  define(library, "gate_with_counts", logits + options + as_type, chosen + counts);
  define(library, "gate_out", logits + options + chosen_out, "");

  const std::string blocks = logits + "int block_size, " + options;
  define(library, "route", blocks + ", " + order_options + as_type, chosen + ", " + order);
  // Names of results are for readers, but no two may be the same.
  define(library, "route_with_details", blocks + ", " + order_options + as_type,
         chosen + ", Tensor chosen_counts, Tensor physical_counts, " + order + details);
  define(library, "route_out", blocks + ", " + order_options + chosen_out + order_out, "");

  const std::string score = "str score=\"softmax\"";
  define(library, "gate_backward",
         "Tensor weights_grad, Tensor logits, Tensor ids, int top_k, " + score +
             ", str weight_mode=\"raw\", float epsilon=0, float scale=1",
         "Tensor logits_grad");
  define(library, "router_loss",
         "Tensor logits, Tensor? ids=None, int? top_k=None, Tensor? counts=None, "
         "Tensor? sequence_offsets=None, " +
             score + ", float balance_coefficient=0, float z_coefficient=0",
         "Tensor loss, Tensor losses, Tensor counts, Tensor logits_grad");
  define(library, "balance_step", "Tensor(a!) bias, Tensor counts, float rate", "");
  define(library, "load_statistics", "Tensor counts", "Tensor statistics");
}

namespace {

void implement(torch::stable::detail::StableLibrary& library) {
  library.impl("align", TORCH_BOX(&align));
  library.impl("align_with_details", TORCH_BOX(&align_with_details));
  library.impl("align_out", TORCH_BOX(&align_out));
  library.impl("gate", TORCH_BOX(&Gates::gate));
  library.impl("gate_with_counts", TORCH_BOX(&Gates::gate_with_counts));
  library.impl("gate_out", TORCH_BOX(&Gates::gate_out));
  library.impl("route", TORCH_BOX(&Routes::route));
  library.impl("route_with_details", TORCH_BOX(&Routes::route_with_details));
  library.impl("route_out", TORCH_BOX(&Routes::route_out));
  library.impl("gate_backward", TORCH_BOX(&gate_backward));
  library.impl("router_loss", TORCH_BOX(&router_loss));
  library.impl("balance_step", TORCH_BOX(&balance_step));
  library.impl("load_statistics", TORCH_BOX(&load_statistics));
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(tokenyard, CPU, library) { implement(library); }
STABLE_TORCH_LIBRARY_IMPL(tokenyard, CUDA, library) { implement(library); }
