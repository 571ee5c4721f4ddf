// tokenyard verify route: random problems against gate and the references of both parts.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/route_run.hpp"
#include "number.hpp"
#include "route_options.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "verify_loop.hpp"

namespace tokenyard::cli {
namespace {

struct VerifyRouteCommand {
  harness::RouteShape shape;
  bool one_shape = false;  // the shape is given: only what is drawn changes with the seed
  std::string device_name = "best";
  std::optional<ty_route_path> path;
  VerifyLoop loop;
  int64_t max_logits = 100'000;

  void run() const;
  harness::RouteShape nth_shape(int64_t n) const;
};

harness::RouteShape VerifyRouteCommand::nth_shape(int64_t n) const {
  const uint64_t seed = shape.gate.seed + static_cast<uint64_t>(n);
  if (!one_shape) return harness::draw_route_shape(seed, max_logits);
  harness::RouteShape same = shape;
  same.gate.seed = seed;
  return same;
}

// Gate's outputs on the device, which hold against the float64 reference; or what does not.
std::string run_gate(const Device& device, const harness::GateProblem& problem, harness::GateOutputs& gate) {
  require(harness::run_gate(device.id, problem, {}, gate));
  const std::string wrong = harness::broken_promise(problem, gate);
  return wrong.empty() ? "" : "gate: " + wrong;
}

// Runs a problem on each path and prints what is wrong with the command that shows it again.
bool is_right(const Device& device, const std::vector<ty_route_path>& paths, const harness::RouteShape& shape,
              Tally& tally) {
  const harness::RouteProblem problem = harness::draw(shape);
  const auto complain = [&](ty_route_path path, const std::string& wrong) {
    clear_progress();
    const std::string& word = word_of(route_path_choices(), path);
    fmt::print("{}, path {}: {}\n  {} --device {} --path {}\n", device.backend->name, word, wrong,
               shape.command(), device.backend->name, word);
  };
  harness::GateOutputs gate;
  std::string wrong = run_gate(device, problem.gate, gate);
  if (!wrong.empty()) {
    complain(paths.front(), wrong);
    return false;
  }
  bool right = true;
  for (const ty_route_path path : paths) {
    harness::RouteOutputs got;
    // One launch has no optional outputs.
    const harness::RouteOptions options{.path = path, .optional_outputs = path == TY_ROUTE_TWO};
    const Status status = harness::run_route(device.id, problem, options, got);
    if (status.code() == TY_UNSUPPORTED && path == TY_ROUTE_ONE) {
      ++tally.refused;
      continue;
    }
    ++tally.runs;
    wrong = status.ok() ? harness::difference(problem, got, gate) : status.message();
    if (wrong.empty()) continue;
    complain(path, wrong);
    right = false;
  }
  return right;
}

void VerifyRouteCommand::run() const {
  const Device device = open_device(device_name);
  std::vector<ty_route_path> paths{TY_ROUTE_ONE, TY_ROUTE_TWO, TY_ROUTE_AUTO};
  if (path) paths = {*path};
  if (one_shape) check_shape(shape);
  fmt::print("verify route on {}\n", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {}\n", device.why_not_best);
  loop.run(shape.gate.seed, one_shape, fmt::format("path {}", word_of(route_path_choices(), paths.front())),
           [&](int64_t n, Tally& tally) { return is_right(device, paths, nth_shape(n), tally); });
}

}  // namespace

void add_verify_route(CLI::App& verify) {
  auto command = std::make_shared<VerifyRouteCommand>();
  CLI::App& route = *verify.add_subcommand("route");
  route.description(
      "Run random problems of route against gate and both references.\n\n"
      "Ids and weights must be those of gate on the same device, to the last bit, and gate's hold\n"
      "against the float64 reference; the order must be what the sequential reference makes of\n"
      "these ids, to the last bit.");
  CLI::Option* tokens = add_tokens_option(route, command->shape.gate);
  add_route_options(route, command->shape);
  add_device_option(route, command->device_name);
  add_route_path_option(route, command->path, "auto, one or two launches; by default all in turn");
  command->loop.add_options(route);
  CLI::Option* most = add_number(route, "--max-logits", command->max_logits,
                                 "T*E of a drawn problem is at most this", {.low = 1});
  separate_given_from_drawn(route, most);
  route.footer(
      "With --tokens the shape is the one given, and only what is drawn changes with the seed.\n"
      "Exit code 1: an output is wrong.\n"
      "\nExamples:\n"
      "  tokenyard verify route --seconds 60\n"
      "  tokenyard verify route --device simt32 --count 50 --max-logits 3000\n"
      "  tokenyard verify route --tokens 64 --experts 256 --top-k 8 --block 128 --path one");
  route.callback([command, tokens] {
    command->one_shape = tokens->count() > 0;
    command->run();
  });
}

}  // namespace tokenyard::cli
