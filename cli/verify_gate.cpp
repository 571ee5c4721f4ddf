// tokenyard verify gate: random problems against the float64 reference.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/gate_run.hpp"
#include "number.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "verify_loop.hpp"

namespace tokenyard::cli {
namespace {

struct VerifyGateCommand {
  harness::GateShape shape;
  bool one_shape = false;  // the shape is given: only what is drawn changes with the seed
  std::string device_name = "best";
  VerifyLoop loop;
  int64_t max_logits = 100'000;
  int32_t lanes = 0;

  void run() const;
  harness::GateShape nth_shape(int64_t n) const;
};

harness::GateShape VerifyGateCommand::nth_shape(int64_t n) const {
  if (!one_shape) return harness::draw_gate_shape(shape.seed + static_cast<uint64_t>(n), max_logits);
  harness::GateShape same = shape;
  same.seed += static_cast<uint64_t>(n);
  return same;
}

// A GPU's kernels are run in turn, and the choice among them too.
std::vector<int32_t> lanes_of(const Device& device, int32_t asked) {
  if (asked != 0) return {asked};
  if (device.is_cpu()) return {0};
  return {0, 1, 8, 16, 32, 64};
}

// Runs a problem with each number of lanes; "" or what is wrong. The CPU's result is held to the reference,
// the others to the CPU's and, where they differ, to the reference.
std::string mistake(const Device& device, const harness::GateProblem& problem,
                    const std::vector<int32_t>& all_lanes, Tally& tally) {
  harness::GateOutputs want;
  require(harness::run_gate({TY_CPU, 0}, problem, {}, want));
  std::string wrong = harness::broken_promise(problem, want);
  if (!wrong.empty()) return "cpu: " + wrong;
  std::optional<harness::GateOutputs> first;
  for (const int32_t lanes : all_lanes) {
    harness::GateOutputs got;
    const Status status = harness::run_gate(device.id, problem, {.lanes = lanes}, got);
    if (status.code() == TY_UNSUPPORTED && lanes != 0) {
      ++tally.refused;
      continue;
    }
    ++tally.runs;
    if (!status.ok()) {
      wrong = status.message();
    } else {
      wrong = first ? harness::difference(got, *first) : harness::mistake(problem, got, want);
      first = std::move(got);
    }
    if (!wrong.empty()) return fmt::format("{} lanes: {}", lanes, wrong);
  }
  return "";
}

void VerifyGateCommand::run() const {
  const Device device = open_device(device_name);
  expect_lanes(device, lanes);
  if (one_shape) check_shape(shape);
  fmt::print("verify gate on {}\n", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {}\n", device.why_not_best);
  loop.run(shape.seed, one_shape, fmt::format("a kernel with {} lanes a token", lanes),
           [&](int64_t n, Tally& tally) {
             const harness::GateProblem problem = harness::draw(nth_shape(n));
             const std::string wrong = mistake(device, problem, lanes_of(device, lanes), tally);
             if (wrong.empty()) return true;
             clear_progress();
             fmt::print("{}, {}\n  {} --device {}\n", device.backend->name, wrong, problem.shape.command(),
                        device.backend->name);
             return false;
           });
}

}  // namespace

void add_verify_gate(CLI::App& verify) {
  auto command = std::make_shared<VerifyGateCommand>();
  CLI::App& gate = *verify.add_subcommand("gate");
  gate.description(
      "Run random problems of gate against the float64 reference.\n\n"
      "Draws problems of every kind that the contract allows. The CPU's outputs are held to the\n"
      "reference, a GPU's to the CPU's, with every number of lanes a token in turn.");
  CLI::Option* tokens = add_tokens_option(gate, command->shape);
  add_gate_options(gate, command->shape);
  add_device_option(gate, command->device_name);
  add_lanes_option(gate, command->lanes, "lanes that share a token; by default all in turn");
  command->loop.add_options(gate);
  CLI::Option* most = add_number(gate, "--max-logits", command->max_logits,
                                 "T*E of a drawn problem is at most this", {.low = 1});
  separate_given_from_drawn(gate, most);
  gate.footer(
      "With --tokens the shape is the one given, and only what is drawn changes with the seed.\n"
      "Exit code 1: an output is wrong.\n"
      "\nExamples:\n"
      "  tokenyard verify gate --seconds 60\n"
      "  tokenyard verify gate --device simt32 --count 50 --max-logits 3000\n"
      "  tokenyard verify gate --tokens 300 --experts 256 --top-k 8 --score sigmoid --bias float32");
  gate.callback([command, tokens] {
    command->one_shape = tokens->count() > 0;
    command->run();
  });
}

}  // namespace tokenyard::cli
