// tokenyard verify gate: random problems against the float64 reference, until the time or the count is
// reached.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "device_option.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/gate_run.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDefaultCount = 200;

struct VerifyGateCommand {
  harness::GateShape shape;
  bool one_shape = false;  // the shape is given: only what is drawn changes with the seed
  std::string device_name = "best";
  std::optional<int64_t> count;
  std::optional<double> seconds;
  int64_t max_logits = 100'000;
  int32_t lanes = 0;

  void run() const;
  harness::GateShape nth_shape(int64_t n) const;
  bool is_done(int64_t problems, double elapsed) const;
};

harness::GateShape VerifyGateCommand::nth_shape(int64_t n) const {
  if (!one_shape) return harness::draw_gate_shape(shape.seed + static_cast<uint64_t>(n), max_logits);
  harness::GateShape same = shape;
  same.seed += static_cast<uint64_t>(n);
  return same;
}

bool VerifyGateCommand::is_done(int64_t problems, double elapsed) const {
  if (seconds && !(elapsed < *seconds)) return true;
  if (count) return problems >= *count;
  return !seconds && problems >= (one_shape ? 1 : kDefaultCount);
}

// A GPU's kernels are run in turn, and the choice among them too.
std::vector<int32_t> lanes_of(const Device& device, int32_t asked) {
  if (asked != 0) return {asked};
  if (device.id.backend == TY_CPU) return {0};
  return {0, 1, 8, 32, 64};
}

// Runs a problem with each number of lanes; "" or what is wrong. The CPU's result is held to the reference,
// the others to the CPU's bits.
std::string mistake(const Device& device, const harness::GateProblem& problem,
                    const std::vector<int32_t>& all_lanes, int64_t& runs) {
  harness::GateOutputs want;
  require(harness::run_gate({TY_CPU, 0}, problem, {}, want));
  std::string wrong = harness::broken_promise(problem, want);
  if (!wrong.empty()) return "cpu: " + wrong;
  std::optional<harness::GateOutputs> first;
  for (const int32_t lanes : all_lanes) {
    harness::GateOutputs got;
    const Status status = harness::run_gate(device.id, problem, {.lanes = lanes}, got);
    if (status.code() == TY_UNSUPPORTED && lanes != 0) continue;
    ++runs;
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
  if (one_shape) check_shape(shape);
  fmt::print("verify gate on {}\n", device.description);
  if (!device.why_not_best.empty()) fmt::print("  {}\n", device.why_not_best);
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  int64_t problems = 0, runs = 0;
  double shown = 0;
  for (; !is_done(problems, elapsed()); ++problems) {
    const harness::GateProblem problem = harness::draw(nth_shape(problems));
    const std::string wrong = mistake(device, problem, lanes_of(device, lanes), runs);
    if (!wrong.empty()) {
      clear_progress();
      fmt::print("{}, {}\n  {} --device {}\n", device.backend->name, wrong, problem.shape.command(),
                 device.backend->name);
      throw Failure(fmt::format("problem {} (seed {}) is wrong", problems, problem.shape.seed));
    }
    constexpr double kBetweenUpdates = 0.1;
    if (elapsed() - shown >= kBetweenUpdates) {
      shown = elapsed();
      show_progress(fmt::format("{} problems, {:.0f} s", problems, shown));
    }
  }
  clear_progress();
  if (runs == 0) {
    throw Failure(
        "nothing ran: no kernel offers what was drawn with so many lanes; expected one run at least: "
        "leave --lanes out, or choose smaller problems");
  }
  fmt::print("  {} problems from seed {}, {} runs, {:.1f} s: every output is right\n", problems, shape.seed,
             runs, elapsed());
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
  gate.add_option("--count", command->count,
                  "stop after so many problems; by default 200, or\n1 of a given shape")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  gate.add_option("--seconds", command->seconds, "stop after so many seconds")
      ->type_name("S")
      ->check(CLI::Range(0.001, 1e9));
  gate.add_option("--max-logits", command->max_logits, "T*E of a drawn problem is at most this")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
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
