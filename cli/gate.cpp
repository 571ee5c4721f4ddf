// tokenyard gate: chooses experts for one batch, shows what came out.
#include <fmt/format.h>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/gate_run.hpp"
#include "picture.hpp"
#include "run_timing.hpp"
#include "subcommands.hpp"
#include "summary.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

constexpr int64_t kVerified = 1 << 24;  // logits up to which the reference takes a few seconds

struct GateCommand {
  harness::GateShape shape{.tokens = 8, .experts = 8, .top_k = 2};
  std::string device_name = "best";
  int32_t lanes = 0;
  bool by_load = false;

  void run() const;
};

std::string lanes_and_reason(const Device& device, const harness::GateShape& shape, int32_t lanes) {
  char text[512];
  ty_gate_args args = harness::gate_args(shape);
  args.lanes = lanes;
  require(ty_gate_explain(device.id, &args, text, sizeof text));
  return text;
}

void GateCommand::run() const {
  const Terminal terminal = standard_output();
  const Device device = open_device(device_name);
  expect_lanes(device, lanes);
  check_shape(shape);
  const harness::GateProblem problem = harness::draw(shape);
  const harness::GateOptions options{.lanes = lanes};
  harness::GateOutputs outputs;
  require(harness::run_gate(device.id, problem, options, outputs));

  fmt::print("{}  {} tokens x {} of {} experts\n", terminal.paint(fmt::emphasis::bold, "gate"), shape.tokens,
             shape.top_k, shape.experts);
  const Summary summary(terminal);
  summary.device(device);
  summary.line("path", "{}", lanes_and_reason(device, shape, lanes));
  if (!device.is_simulated() && shape.tokens > 0) {
    GateTimer timer(device, {problem}, options);
    summary.time(device, timer.measure());
  }
  std::string wrong;
  if (shape.tokens * shape.experts <= kVerified) {
    wrong = harness::broken_promise(problem, outputs);
    summary.verified(wrong, "every output is what the float64 reference says");
  }
  fmt::print("\n{}",
             fits_choices_picture(problem)
                 ? choices_picture(problem, outputs)
                 : loads_picture(terminal, outputs.counts, by_load ? LoadOrder::kByLoad : LoadOrder::kById));
  if (!wrong.empty()) throw Failure(fmt::format("the result is wrong: {}", wrong));
}

}  // namespace

void add_gate(CLI::App& app) {
  auto command = std::make_shared<GateCommand>();
  CLI::App& gate = *app.add_subcommand("gate");
  gate.description(
      "Choose experts for one batch and show what came out.\n\n"
      "Draws router logits [T, E], chooses K experts for each token and weighs them. Few tokens\n"
      "are listed, of many the experts' loads are drawn.");
  add_tokens_option(gate, command->shape);
  add_gate_options(gate, command->shape);
  add_preset_option(gate, command->shape);
  add_device_option(gate, command->device_name);
  add_lanes_option(gate, command->lanes,
                   "GPU lanes that share a token, 0: as tuned; the\nsame bits, another time");
  gate.add_flag("--by-load", command->by_load, "show the experts' loads highest first, not by id");
  gate.footer(
      "Examples:\n"
      "  tokenyard gate\n"
      "  tokenyard gate --preset deepseek-v3 --tokens 4096 --dtype bfloat16\n"
      "  tokenyard gate --experts 60 --top-k 4 --score softmax --weights renormalized --device simt32");
  gate.callback([command] { command->run(); });
}

}  // namespace tokenyard::cli
