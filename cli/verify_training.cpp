// tokenyard verify training: random problems of the router's training against the float64 reference.
#include <fmt/format.h>

#include <string>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/training_run.hpp"
#include "number.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "training_options.hpp"
#include "verify_loop.hpp"

namespace tokenyard::cli {
namespace {

using harness::TrainingShape;

struct VerifyTrainingCommand {
  TrainingShape shape;
  bool one_shape = false;  // the shape is given: only what is drawn changes with the seed
  std::string device_name = "best";
  VerifyLoop loop;
  int64_t max_logits = 100'000;

  void run() const;
  TrainingShape nth_shape(int64_t n) const;
};

TrainingShape VerifyTrainingCommand::nth_shape(int64_t n) const {
  const uint64_t seed = shape.gate.seed + static_cast<uint64_t>(n);
  if (!one_shape) return harness::draw_training_shape(seed, max_logits);
  TrainingShape same = shape;
  same.gate.seed = seed;
  return same;
}

// Runs one operation: "" or what is wrong. The CPU's result is held to the reference, a GPU's to the CPU's
// bits.
template <class Outputs, class Problem>
std::string mistake(const Device& device, const Problem& problem,
                    Status (*run)(ty_device, const Problem&, const harness::TrainingOptions&, Outputs&),
                    Tally& tally) {
  Outputs want;
  require(run({TY_CPU, 0}, problem, {}, want));
  const std::string broken = harness::broken_promise(problem, want);
  if (!broken.empty()) return "cpu: " + broken;
  Outputs got;
  const Status status = run(device.id, problem, {}, got);
  ++tally.runs;
  return status.ok() ? harness::difference(got, want) : status.message();
}

// Runs a problem through all three and prints what is wrong with the command that shows it again.
bool is_right(const Device& device, const TrainingShape& shape, Tally& tally) {
  const harness::LossProblem problem = harness::draw(shape);
  bool right = true;
  const auto report = [&](const char* operation, const std::string& wrong) {
    if (wrong.empty()) return;
    clear_progress();
    fmt::print("{}, {}: {}\n  {} --device {}\n", device.backend->name, operation, wrong, shape.command(),
               device.backend->name);
    right = false;
  };
  report("gate_backward", mistake(device, problem.chosen, harness::run_backward, tally));
  report("router_loss", mistake(device, problem, harness::run_loss, tally));
  report("balance", mistake(device, harness::balance_of(problem.chosen), harness::run_balance, tally));
  return right;
}

void VerifyTrainingCommand::run() const {
  const Device device = open_device(device_name);
  if (one_shape) check_shape(shape);
  fmt::print("verify training on {}\n", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {}\n", device.why_not_best);
  loop.run(shape.gate.seed, one_shape, "the device",
           [&](int64_t n, Tally& tally) { return is_right(device, nth_shape(n), tally); });
}

}  // namespace

void add_verify_training(CLI::App& verify) {
  auto command = std::make_shared<VerifyTrainingCommand>();
  CLI::App& training = *verify.add_subcommand("training");
  training.description(
      "Run random problems of training against the float64 reference.\n\n"
      "Draws batches of every kind that the contract allows, takes the backward of gate on each,\n"
      "both losses with their gradient, and a step of the balancing bias. The CPU's outputs are held\n"
      "to the reference, a GPU's to the CPU's bits.");
  CLI::Option* tokens = add_tokens_option(training, command->shape.gate);
  add_training_options(training, command->shape);
  add_device_option(training, command->device_name);
  command->loop.add_options(training);
  CLI::Option* most = add_number(training, "--max-logits", command->max_logits,
                                 "T*E of a drawn problem is at most this", {.low = 1});
  separate_given_from_drawn(training, most);
  training.footer(
      "With --tokens the shape is the one given, and only what is drawn changes with the seed.\n"
      "Exit code 1: an output is wrong.\n"
      "\nExamples:\n"
      "  tokenyard verify training --seconds 60\n"
      "  tokenyard verify training --device simt32 --count 50 --max-logits 3000\n"
      "  tokenyard verify training --tokens 300 --experts 256 --top-k 8 --score sigmoid --sequences 4");
  training.callback([command, tokens] {
    command->one_shape = tokens->count() > 0;
    command->run();
  });
}

}  // namespace tokenyard::cli
