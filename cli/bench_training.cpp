// tokenyard bench training: times the router's training over batch sizes, every case verified.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bench_inputs.hpp"
#include "bench_result.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/training_run.hpp"
#include "number.hpp"
#include "run_timing.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "training_options.hpp"

namespace tokenyard::cli {
namespace {

using harness::BackwardProblem;
using harness::BalanceProblem;
using harness::LossProblem;
using harness::TrainingOptions;
using harness::TrainingShape;

enum class Operation { kGateBackward, kRouterLoss, kBalance };

const Choices<Operation>& operation_choices() {
  static const Choices<Operation> choices{{"gate_backward", Operation::kGateBackward},
                                          {"router_loss", Operation::kRouterLoss},
                                          {"balance", Operation::kBalance}};
  return choices;
}

struct BenchTrainingCommand {
  std::vector<Operation> operations{Operation::kGateBackward, Operation::kRouterLoss, Operation::kBalance};
  std::vector<int64_t> tokens{1, 64, 1024, 4096, 16384, 65536};
  TrainingShape shape{.gate = {.experts = 256, .top_k = 8, .dtype = TY_BFLOAT16}};
  std::string preset;
  std::string device_name = "best";
  std::string json_file;
  std::string command_line;

  void run() const;
  Json measure(const Device& device, Operation operation, const TrainingShape& sized) const;
};

// Times one operation on inputs of one shape, whose outputs must have the CPU's bits before and after.
template <class Run, class Outputs, class Problem>
Timing time_run(const Device& device, const TrainingShape& sized, std::vector<Problem> inputs,
                Status (*run)(ty_device, const Problem&, const TrainingOptions&, Outputs&)) {
  RunTimer<Problem, Run, TrainingOptions, Outputs> timer(device, std::move(inputs), {});
  const auto mistake = [&](const Problem& problem, const Outputs& got) {
    Outputs want;
    require(run({TY_CPU, 0}, problem, {}, want));
    return harness::difference(got, want);
  };
  const auto verify = [&](const char* when) {
    const std::string wrong = timer.first(mistake);
    if (wrong.empty()) return;
    throw Failure(fmt::format("{} tokens: wrong {} the measurement: {}; {}", sized.gate.tokens, when, wrong,
                              sized.command()));
  };
  verify("before");
  const Timing timing = timer.measure();
  verify("after");
  return timing;
}

Timing time_operation(const Device& device, Operation operation, const TrainingShape& sized) {
  std::vector<LossProblem> losses = rotated_inputs(sized, kCallsInGraph);
  if (operation == Operation::kRouterLoss) {
    return time_run<harness::LossRun>(device, sized, std::move(losses), harness::run_loss);
  }
  if (operation == Operation::kBalance) {
    std::vector<BalanceProblem> loads;
    loads.reserve(losses.size());
    for (const LossProblem& each : losses) loads.push_back(harness::balance_of(each.chosen));
    return time_run<harness::BalanceRun>(device, sized, std::move(loads), harness::run_balance);
  }
  std::vector<BackwardProblem> chosen;
  chosen.reserve(losses.size());
  for (LossProblem& each : losses) chosen.push_back(std::move(each.chosen));
  return time_run<harness::BackwardRun>(device, sized, std::move(chosen), harness::run_backward);
}

Json BenchTrainingCommand::measure(const Device& device, Operation operation,
                                   const TrainingShape& sized) const {
  const Timing timing = time_operation(device, operation, sized);
  return with_timing({{"op", word_of(operation_choices(), operation)},
                      {"impl", "tokenyard"},
                      {"preset", preset.empty() ? Json(nullptr) : Json(preset)},
                      {"path", nullptr},
                      {"tokens", sized.gate.tokens},
                      {"top_k", sized.gate.top_k},
                      {"experts", sized.gate.experts},
                      {"sequences", std::max(sized.sequences, 1)},
                      {"dtype", word_of(logits_dtype_choices(), sized.gate.dtype)},
                      {"distribution", word_of(logits_choices(), sized.gate.logits)},
                      {"cold", false}},
                     timing);
}

void BenchTrainingCommand::run() const {
  const Device device = open_timed_device(device_name);
  ResultFile file(json_file);
  fmt::print(stderr, "bench training on {}\n  {}, {} inputs in rotation\n", device.description,
             timer_name(device), kCallsInGraph);
  const BenchTable table({{"operation", 13}, {"tokens", 7}, {"K of E", 9}, {"dtype", 9}});
  Json results = Json::array();
  for (const Operation operation : operations) {
    for (const int64_t count : tokens) {
      // A load is as many counts of however many tokens.
      if (operation == Operation::kBalance && count != tokens.front()) continue;
      TrainingShape sized = shape;
      sized.gate.tokens = count;
      check_shape(sized);
      show_progress(fmt::format("{}, {} tokens", word_of(operation_choices(), operation), count));
      results.push_back(measure(device, operation, sized));
      const Json& row = results.back();
      clear_progress();
      table.print({row["op"], fmt::to_string(count), k_of_e(row), row["dtype"]}, row);
    }
  }
  file.write(device, command_line, results);
}

}  // namespace

void add_bench_training(CLI::App& bench, const std::string& command_line) {
  auto command = std::make_shared<BenchTrainingCommand>();
  command->command_line = command_line;
  CLI::App& training = *bench.add_subcommand("training");
  training.description(
      "Time the router's training over numbers of tokens.\n\n"
      "Times the backward of gate, both losses with their gradient, and a step of the balancing bias\n"
      "for each of --tokens, in µs a call: 20 calls in a graph, each with logits of its own, median\n"
      "and spread of 60 replays; on a CPU, each call by the clock. A step takes the loads of one batch\n"
      "and is timed once.");
  add_choice_list(training, "--operation", operation_choices(), command->operations,
                  "gate_backward, router_loss, balance");
  add_training_options(training, command->shape);
  CLI::Option* preset = add_preset_option(training, command->shape.gate);
  add_numbers(training, "--tokens", command->tokens, "T, rows of the logits [T, E]");
  add_device_option(training, command->device_name);
  training.add_option("--json", command->json_file, "write context and results there")->type_name("FILE");
  training.footer(
      "Examples:\n"
      "  tokenyard bench training --preset deepseek-v3 --json training.json\n"
      "  tokenyard bench training --operation router_loss --experts 64 --top-k 6 --sequences 8");
  training.callback([command, preset] {
    if (preset->count() > 0) command->preset = preset->results().back();
    command->run();
  });
}

}  // namespace tokenyard::cli
