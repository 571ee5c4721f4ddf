// tokenyard bench route: times route over batch sizes, every case verified.
#include <fmt/format.h>

#include "bench_inputs.hpp"
#include "bench_result.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/route_run.hpp"
#include "number.hpp"
#include "route_options.hpp"
#include "run_timing.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

using harness::RouteProblem;
using harness::RouteShape;

struct BenchRouteCommand {
  std::vector<int64_t> tokens{1, 16, 64, 256, 1024, 4096, 16384, 65536};
  std::vector<ty_route_path> paths{TY_ROUTE_AUTO};
  RouteShape shape{.gate = {.experts = 256, .top_k = 8, .dtype = TY_BFLOAT16}};
  bool optional_outputs = false;
  std::string preset;
  std::string device_name = "best";
  std::string json_file;
  std::string command_line;

  void run() const;
  Json measure(const Device& device, const RouteShape& sized, ty_route_path path) const;
};

std::vector<RouteProblem> rotated_inputs(const RouteShape& shape) {
  const std::vector<int32_t> map = harness::draw(shape.align()).expert_map;
  std::vector<RouteProblem> inputs;
  for (harness::GateProblem& gate : cli::rotated_inputs(shape.gate, kCallsInGraph)) {
    inputs.push_back({shape, std::move(gate), map});
  }
  return inputs;
}

// "one" or "two", with which the explanation begins.
std::string path_taken(const Device& device, const RouteShape& shape, ty_route_path path) {
  const std::string explanation = route_explanation(device, shape, path);
  return explanation.substr(0, explanation.find_first_of(":,"));
}

Json BenchRouteCommand::measure(const Device& device, const RouteShape& sized, ty_route_path path) const {
  RouteTimer timer(device, rotated_inputs(sized), {.path = path, .optional_outputs = optional_outputs});
  const auto difference = [&](const RouteProblem& problem, const harness::RouteOutputs& got) {
    harness::GateOutputs gate;
    require(harness::run_gate(device.id, problem.gate,
                              {.optional_outputs = optional_outputs, .stream = device.timed_stream.get()},
                              gate));
    return harness::difference(problem, got, gate);
  };
  const auto verify = [&](const char* when) {
    const std::string wrong = timer.first(difference);
    if (wrong.empty()) return;
    throw Failure(fmt::format("{} tokens: wrong {} the measurement: {}; {}", sized.gate.tokens, when, wrong,
                              sized.command()));
  };
  verify("before");
  const Timing timing = timer.measure();
  verify("after");
  return with_timing({{"op", "route"},
                      {"impl", "tokenyard"},
                      {"preset", preset.empty() ? Json(nullptr) : Json(preset)},
                      {"path", path_taken(device, sized, path)},
                      {"tokens", sized.gate.tokens},
                      {"top_k", sized.gate.top_k},
                      {"experts", sized.gate.experts},
                      {"block", sized.block},
                      {"dtype", word_of(logits_dtype_choices(), sized.gate.dtype)},
                      {"distribution", word_of(logits_choices(), sized.gate.logits)},
                      {"cold", false}},
                     timing);
}

void BenchRouteCommand::run() const {
  const Device device = open_timed_device(device_name);
  ResultFile file(json_file);
  fmt::print(stderr, "bench route on {}\n  {}, {} inputs in rotation\n", device.description,
             timer_name(device), kCallsInGraph);
  const BenchTable table({{"tokens", 7}, {"K of E", 9}, {"block", 5}, {"dtype", 9}, {"path", 5}});
  Json results = Json::array();
  for (const int64_t count : tokens) {
    RouteShape sized = shape;
    sized.gate.tokens = count;
    check_shape(sized);
    for (const ty_route_path path : paths) {
      show_progress(fmt::format("{} tokens", count));
      results.push_back(measure(device, sized, path));
      const Json& row = results.back();
      clear_progress();
      table.print(
          {fmt::to_string(count), k_of_e(row), fmt::to_string(sized.block), row["dtype"], row["path"]}, row);
    }
  }
  file.write(device, command_line, results);
}

}  // namespace

void add_bench_route(CLI::App& bench, const std::string& command_line) {
  auto command = std::make_shared<BenchRouteCommand>();
  command->command_line = command_line;
  CLI::App& route = *bench.add_subcommand("route");
  route.description(
      "Time route over numbers of tokens.\n\n"
      "Times route for every combination of --tokens and --path, in µs a call: 20 calls in a graph,\n"
      "each with logits of its own, median and spread of 60 replays; on a CPU, each call by the\n"
      "clock.");
  add_route_options(route, command->shape);
  CLI::Option* preset = add_preset_option(route, command->shape.gate);
  add_numbers(route, "--tokens", command->tokens, "T, rows of the logits [T, E]");
  add_choice_list(route, "--path", route_path_choices(), command->paths, "auto, one or two launches");
  route.add_flag("--all-outputs", command->optional_outputs, "the optional outputs of gate and align too");
  add_device_option(route, command->device_name);
  route.add_option("--json", command->json_file, "write context and results there")->type_name("FILE");
  route.footer(
      "Examples:\n"
      "  tokenyard bench route --preset deepseek-v3 --path auto,two --json route.json\n"
      "  tokenyard bench route --preset qwen3-moe --tokens 1,64,1024 --block 64");
  route.callback([command, preset] {
    if (preset->count() > 0) command->preset = preset->results().back();
    command->run();
  });
}

}  // namespace tokenyard::cli
