#include "route/plan.hpp"

#include <algorithm>

#include "align/plan.hpp"
#include "gate/router.hpp"
#include "gate/weights.hpp"
#include "runtime/text.hpp"

namespace tokenyard::route {
namespace {

// What one launch is not compiled for, or nullptr.
const char* foreign_to_one(const Problem& problem) {
  const gate::Problem& gate = problem.gate;
  const gate::Weighting weighting = gate::weighting_of(gate);
  const bool by_logit =
      gate.bias == nullptr && gate.num_groups == 1 && weighting == gate::Weighting::kSoftmaxOfChosen;
  const bool eight_groups = gate.num_groups == 8 && gate.num_experts == kMostExperts;
  const bool by_sigmoid = gate.bias != nullptr && weighting == gate::Weighting::kSigmoid &&
                          (gate.num_groups == 1 || eight_groups);
  if (gate.num_experts > kMostExperts) return "more than 256 experts";
  if (gate.top_k > kMostChosen) return "more than 8 chosen experts";
  if (gate.logits_dtype == TY_FLOAT16) return "float16 logits";
  if (!by_logit && !by_sigmoid) return "this way to choose and weigh experts";
  if (!gate::loads_whole_chunks(gate, kItems)) return "rows or a bias that cannot be loaded 16 bytes at once";
  if (!gate::has_small_stride(gate)) return "rows that lie too far apart";
  if (gate.num_shared_experts > 0) return "shared experts";
  if (gate.replicas != nullptr) return "replicas";
  if (problem.align.expert_map != nullptr) return "an expert map";
  if (gate.counts != nullptr || align::has_optional_outputs(problem.align)) return "optional outputs";
  if (gate.lanes != 0 || problem.align.path != TY_ALIGN_AUTO) return "parts that go a way of their own";
  return nullptr;
}

}  // namespace

Plan plan(const DeviceProperties& device, std::span<const tuning::RouteLaunch> launches,
          const Problem& problem) {
  if (problem.path == TY_ROUTE_TWO) return {0, "as asked for"};
  const int64_t tokens = problem.gate.num_tokens;
  int64_t most = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    const tuning::RouteLaunch& launch = launches[i];
    if (launch.cluster > device.max_cluster) continue;
    most = std::max(most, launch.all_tokens());
    if (tokens == 0 || tokens > launch.all_tokens() || foreign_to_one(problem) != nullptr) continue;
    return {static_cast<int32_t>(i + 1),
            launch.cluster == 1 ? text(tokens, " tokens in a block")
                                : text(tokens, " tokens in a cluster of ", launch.cluster, " blocks")};
  }
  if (most == 0) return {0, text("no single launch on ", device.arch)};
  if (tokens == 0 || tokens > most) return {0, text(tokens, " tokens, one launch takes 1 to ", most)};
  return {0, text("one launch does not take ", foreign_to_one(problem))};
}

}  // namespace tokenyard::route
