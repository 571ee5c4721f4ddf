// tokenyard gate: chooses experts for one batch, shows what came out.
#include <fmt/format.h>

#include <algorithm>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "gate_timing.hpp"
#include "harness/gate_run.hpp"
#include "picture.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

constexpr int64_t kShownTokens = 16;
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

// A line for each token: its experts with their weights.
std::string choices_picture(const harness::GateProblem& problem, const harness::GateOutputs& outputs) {
  std::string lines = "token: experts with their weights, best first\n";
  for (int64_t token = 0; token < problem.shape.tokens; ++token) {
    lines += fmt::format("{:>5}:", token);
    for (int32_t k = 0; k < problem.columns(); ++k) {
      const auto at = static_cast<size_t>(token * problem.columns() + k);
      lines += fmt::format("  {} {:.4f}", outputs.ids[at], outputs.weights[at]);
    }
    lines += '\n';
  }
  return lines;
}

void GateCommand::run() const {
  const Terminal terminal = standard_output();
  const Device device = open_device(device_name);
  check_shape(shape);
  const harness::GateProblem problem = harness::draw(shape);
  const harness::GateOptions options{.lanes = lanes};
  harness::GateOutputs outputs;
  require(harness::run_gate(device.id, problem, options, outputs));

  fmt::print("{}  {} tokens x {} of {} experts\n", terminal.paint(fmt::emphasis::bold, "gate"), shape.tokens,
             shape.top_k, shape.experts);
  fmt::print("  {:<9}{}\n", "device", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {:<9}{}\n", "", device.why_not_best);
  fmt::print("  {:<9}{}\n", "path", fold_words(terminal, lanes_and_reason(device, shape, lanes), 11));
  if (!device.is_simulated() && shape.tokens > 0) {
    GateTimer timer(device, {problem}, options);
    const Timing timing = timer.measure();
    fmt::print("  {:<9}{:.2f} µs a call ({:.2f} to {:.2f}), {}\n", "time", timing.us.p50, timing.us.p20,
               timing.us.p80, timer_name(device));
  }
  std::string wrong;
  if (shape.tokens * shape.experts <= kVerified) {
    wrong = harness::broken_promise(problem, outputs);
    fmt::print(
        "  {:<9}{}\n", "verified",
        wrong.empty() ? "every output is what the float64 reference says" : fmt::format("NO: {}", wrong));
  }
  fmt::print("\n{}",
             shape.tokens <= kShownTokens
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
