#include "route_options.hpp"

#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/route_run.hpp"
#include "number.hpp"
#include "route/contract.hpp"

namespace tokenyard::cli {

const Choices<ty_route_path>& route_path_choices() {
  static const Choices<ty_route_path> choices{
      {"auto", TY_ROUTE_AUTO}, {"one", TY_ROUTE_ONE}, {"two", TY_ROUTE_TWO}};
  return choices;
}

CLI::Option* add_route_path_option(CLI::App& command, std::optional<ty_route_path>& path,
                                   const std::string& description) {
  return add_choice(command, "--path", route_path_choices(), path, description);
}

void add_route_options(CLI::App& command, harness::RouteShape& shape) {
  add_gate_options(command, shape.gate);
  const auto number = [&](const char* option, auto& target, const char* description,
                          Range<std::decay_t<decltype(target)>> range = {}) {
    return add_number(command, option, target, description, range)->group("Problem");
  };
  number("--block", shape.block, "B, slots in a block: the matrix product's rows");
  CLI::Option* local_experts = number("--local-experts", shape.local_experts,
                                      "draw an expert map to so many local experts", {.low = 0});
  command
      .add_flag("--several-on-one", shape.several_on_one,
                "of the map: several experts on a local one, and\nentries that are none")
      ->needs(local_experts)
      ->group("Problem");
  number("--extra-capacity", shape.extra_capacity, "slots beyond what ty_align_capacity() says");
}

void check_shape(const harness::RouteShape& shape) {
  const harness::RouteCall call(shape, TY_ROUTE_AUTO);
  route::Problem problem;
  require(route::check(&call.args(), Pointers::kMayBeNull, problem));
}

std::string route_explanation(const Device& device, const harness::RouteShape& shape, ty_route_path path) {
  const harness::RouteCall call(shape, path);
  char text[1024];
  require(ty_route_explain(device.id, &call.args(), text, sizeof text));
  return text;
}

}  // namespace tokenyard::cli
