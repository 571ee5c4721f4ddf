#include "route/contract.hpp"

#include <cstddef>

#include "runtime/text.hpp"

namespace tokenyard::route {
namespace {

// The struct as it was in its first version: nothing shorter is accepted.
constexpr size_t kFirstSize = sizeof(ty_route_args);

constexpr Check kCheck("route");

// What one of the two says about its arguments.
Status of_part(const Status& status) {
  return status.ok() ? Status() : Status(status.code(), "route: " + status.message());
}

void take_ids(const gate::Problem& gate, ty_align_args& align) {
  align.ids_dtype = gate.ids_are_int64 ? TY_INT64 : TY_INT32;
  align.topk_ids = gate.ids;
  align.num_tokens = gate.num_tokens;
  align.row_stride = gate.columns();
  align.top_k = gate.columns();
  align.num_experts = gate.num_physical_experts + gate.num_shared_experts;
  align.linked = 0;
  align.first_id = 0;
}

// In the order every expert has blocks of its own, the shared ones too.
Status check_experts(const gate::Problem& gate) {
  if (gate.num_physical_experts + gate.num_shared_experts <= align::kMaxExperts) return {};
  const bool renamed = gate.replicas != nullptr;
  return kCheck.invalid(
      renamed ? "gate: num_physical_experts + num_shared_experts" : "gate: num_experts + num_shared_experts",
      text(gate.num_physical_experts, " + ", gate.num_shared_experts),
      text("a sum of at most ", align::kMaxExperts),
      "pass fewer replicas or shared experts: each has blocks of its own in the order");
}

}  // namespace

Status check(const ty_route_args* given, Pointers pointers, Problem& problem) {
  ty_route_args args = TY_ROUTE_ARGS_INIT;
  TY_RETURN_IF_ERROR(kCheck.read(given, kFirstSize, "ty_route_args", "TY_ROUTE_ARGS_INIT", args));
  if (args.path < TY_ROUTE_AUTO || args.path > TY_ROUTE_TWO) {
    return kCheck.invalid("path", text(args.path), "a ty_route_path", "use TY_ROUTE_AUTO");
  }
  problem.path = static_cast<ty_route_path>(args.path);
  TY_RETURN_IF_ERROR(of_part(gate::check(args.gate, pointers, problem.gate)));
  TY_RETURN_IF_ERROR(check_experts(problem.gate));
  ty_align_args align;
  TY_RETURN_IF_ERROR(of_part(align::read(args.align, align)));
  take_ids(problem.gate, align);
  return of_part(align::check(align, pointers, problem.align));
}

}  // namespace tokenyard::route
