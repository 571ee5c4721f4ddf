// tokenyard balance: lets a bias even out a load, step after step, and shows how.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/gate_run.hpp"
#include "harness/guarded_buffer.hpp"
#include "harness/random.hpp"
#include "number.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

struct BalanceCommand {
  harness::GateShape shape{
      .tokens = 1024, .experts = 64, .top_k = 6, .score = TY_GATE_SIGMOID, .weights = TY_GATE_RENORMALIZED};
  std::string device_name = "best";
  int64_t steps = 500;
  float rate = 0.005f;
  float skew = 1;

  void run();
};

// Logits of experts that are liked more or less: each has an offset, from -skew to skew.
harness::GateProblem draw_skewed(const harness::GateShape& shape, float skew) {
  harness::GateProblem problem = harness::draw(shape);
  harness::Random random(shape.seed + 1);
  std::vector<float> offsets(static_cast<size_t>(shape.experts));
  for (float& offset : offsets) offset = skew * static_cast<float>(random.between(-1024, 1024)) / 1024;
  for (size_t i = 0; i < problem.logits.size(); ++i) {
    problem.logits[i] = harness::cut(problem.logits[i] + offsets[i % offsets.size()], shape.dtype);
  }
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
  return problem;
}

// 0, 1, 2, 5, 10, 20, 50, ... and the last.
bool is_shown(int64_t step, int64_t last) {
  int64_t unit = 1;
  while (unit * 10 <= step) unit *= 10;
  return step == last || step == 0 || step == unit || step == 2 * unit || step == 5 * unit;
}

void BalanceCommand::run() {
  shape.bias = true;
  shape.bias_as_logits = false;
  const Terminal terminal = standard_output();
  const Device device = open_device(device_name);
  check_shape(shape);
  if (shape.tokens == 0)
    throw wrong_usage("--tokens is 0, expected at least 1: without tokens there is no load");

  std::optional<harness::GateRun> run;
  require(harness::GateRun::create(device.id, draw_skewed(shape, skew), {}, run));
  harness::GuardedBuffer statistics;
  require(harness::GuardedBuffer::create(device.runtime(), "statistics", 4 * sizeof(float), 0, statistics));
  const ty_gate_args& gate = run->args();
  ty_balance_args balance = TY_BALANCE_ARGS_INIT;
  balance.counts = gate.counts;
  balance.num_experts = shape.experts;
  balance.rate = rate;
  balance.bias = static_cast<float*>(const_cast<void*>(gate.bias));  // the run's own memory
  balance.statistics = static_cast<float*>(statistics.data());

  fmt::print("{}  {} tokens x {} of {} experts, {} steps of {}\n",
             terminal.paint(fmt::emphasis::bold, "balance"), shape.tokens, shape.top_k, shape.experts, steps,
             rate);
  fmt::print("  {:<9}{}\n", "device", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {:<9}{}\n", "", device.why_not_best);
  fmt::print("\n{:>7}  {:>8}  {:>8}  {:>7}  {:>6}\n", "step", "max/mean", "min/mean", "entropy", "idle");
  for (int64_t step = 0; step <= steps; ++step) {
    require(ty_gate(device.id, &gate, nullptr));
    require(ty_balance(device.id, &balance, nullptr));
    if (!is_shown(step, steps)) continue;
    float load[4];
    require(device.runtime().synchronize(nullptr));
    require(statistics.read(load));
    fmt::print("{:>7}  {:>8.2f}  {:>8.2f}  {:>7.4f}  {:>5.1f}%\n", step, load[TY_LOAD_MAX], load[TY_LOAD_MIN],
               load[TY_LOAD_ENTROPY], 100 * load[TY_LOAD_IDLE]);
  }
}

}  // namespace

void add_balance(CLI::App& app) {
  auto command = std::make_shared<BalanceCommand>();
  CLI::App& balance = *app.add_subcommand("balance");
  balance.description(
      "Let a bias even out the experts' load, and show how.\n\n"
      "Draws logits of experts that are liked unequally. Each step chooses with the biases as they\n"
      "are, then moves each bias by --rate against its expert's load. Shown are the load before the\n"
      "step: its highest and lowest over the mean, its entropy (1 is even), experts without a token.");
  add_tokens_option(balance, command->shape);
  add_gate_options(balance, command->shape);
  add_preset_option(balance, command->shape);
  balance.remove_option(balance.get_option("--bias"));  // it is what balances
  add_device_option(balance, command->device_name);
  add_number(balance, "--steps", command->steps, "steps to take", {0, int64_t{1} << 40});
  add_number(balance, "--rate", command->rate, "of a step, added to a bias or taken from it");
  add_number(balance, "--skew", command->skew,
             "how unequally experts are liked: the most that is\nadded to an expert's logits");
  balance.footer(
      "Examples:\n"
      "  tokenyard balance\n"
      "  tokenyard balance --preset deepseek-v3 --tokens 4096 --steps 200 --rate 0.01\n"
      "  tokenyard balance --experts 8 --top-k 2 --tokens 100 --device simt32 --steps 20");
  balance.callback([command] { command->run(); });
}

}  // namespace tokenyard::cli
