// tokenyard route: chooses experts for one batch, puts the tokens in their order, shows what came out.
#include <fmt/format.h>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/route_run.hpp"
#include "picture.hpp"
#include "route_options.hpp"
#include "run_timing.hpp"
#include "subcommands.hpp"
#include "summary.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

struct RouteCommand {
  harness::RouteShape shape{.gate = {.tokens = 8, .experts = 8, .top_k = 2}, .block = 4};
  std::string device_name = "best";
  std::optional<ty_route_path> path;

  void run() const;
};

void RouteCommand::run() const {
  const Terminal terminal = standard_output();
  const Device device = open_device(device_name);
  check_shape(shape);
  const harness::RouteProblem problem = harness::draw(shape);
  const harness::RouteOptions options{.path = path.value_or(TY_ROUTE_AUTO), .optional_outputs = false};
  harness::RouteOutputs outputs;
  require(harness::run_route(device.id, problem, options, outputs));
  const harness::AlignProblem order = problem.align(outputs.gate.ids);
  const harness::AlignOutputs sorted = harness::expected(order);  // with the loads, too

  fmt::print("{}  {} tokens x {} of {} experts, blocks of {}\n", terminal.paint(fmt::emphasis::bold, "route"),
             shape.gate.tokens, shape.gate.top_k, shape.gate.experts, shape.block);
  const Summary summary(terminal);
  summary.device(device);
  summary.line("path", "{}", route_explanation(device, shape, options.path));
  summary.order(order, sorted);
  if (!device.is_simulated()) {
    RouteTimer timer(device, {problem}, options);
    summary.time(device, timer.measure());
  }
  harness::GateOutputs gate;
  require(harness::run_gate(device.id, problem.gate, {}, gate));
  const std::string wrong = harness::difference(problem, outputs, gate);
  summary.verified(wrong, "ids and weights are gate's, the order is the reference's");
  if (fits_choices_picture(problem.gate)) fmt::print("\n{}", choices_picture(problem.gate, outputs.gate));
  fmt::print("\n{}", fits_blocks_picture(order) ? blocks_picture(terminal, order, sorted)
                                                : loads_picture(terminal, sorted.counts, LoadOrder::kById));
  if (!wrong.empty()) throw Failure(fmt::format("the result is wrong: {}", wrong));
}

}  // namespace

void add_route(CLI::App& app) {
  auto command = std::make_shared<RouteCommand>();
  CLI::App& route = *app.add_subcommand("route");
  route.description(
      "Choose experts for one batch, sort by them and show what came out.\n\n"
      "Draws router logits [T, E]. What gate makes of them, align sorts, in one launch where that\n"
      "is faster.");
  add_tokens_option(route, command->shape.gate);
  add_route_options(route, command->shape);
  add_preset_option(route, command->shape.gate);
  add_device_option(route, command->device_name);
  add_route_path_option(route, command->path, "auto, one or two launches: the same bits,\nanother time");
  route.footer(
      "Examples:\n"
      "  tokenyard route\n"
      "  tokenyard route --preset deepseek-v3 --tokens 64 --dtype bfloat16 --block 128\n"
      "  tokenyard route --tokens 6 --experts 6 --top-k 2 --block 2 --device simt32");
  route.callback([command] { command->run(); });
}

}  // namespace tokenyard::cli
