// tokenyard verify: random problems against the reference, until the time or the count is reached.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "device_option.hpp"
#include "failure.hpp"
#include "harness/align_run.hpp"
#include "number.hpp"
#include "problem_options.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "verify_loop.hpp"

namespace tokenyard::cli {
namespace {

// A CPU has one way to run; a GPU's paths are run in turn, and the choice among them too.
std::vector<ty_align_path> paths_of(const Device& device) {
  if (device.is_cpu()) return {TY_ALIGN_AUTO};
  return {TY_ALIGN_EVERYWHERE, TY_ALIGN_GRID, TY_ALIGN_SPLIT, TY_ALIGN_AUTO};
}

struct VerifyCommand {
  harness::AlignShape shape;
  bool one_shape = false;  // the shape is given: only what is drawn changes with the seed
  std::string device_name = "best";
  std::optional<ty_align_path> path;
  VerifyLoop loop;
  int64_t max_pairs = 20'000;

  void run() const;
  harness::AlignShape nth_shape(int64_t n) const;
};

harness::AlignShape VerifyCommand::nth_shape(int64_t n) const {
  if (!one_shape) return harness::draw_shape(shape.seed + n, max_pairs);
  harness::AlignShape same = shape;
  same.seed += n;
  return same;
}

// Kernels without optional outputs are others, as are linked launches. By the seed, so that one problem can
// be shown again.
harness::AlignOptions options_of(const harness::AlignProblem& problem, ty_align_path path) {
  const auto seed = static_cast<uint64_t>(problem.shape.seed);
  return {.path = path,
          .optional_outputs = seed % 2 == 0,
          .misalignment = static_cast<int>(seed / 2 % 3),
          .linked = seed / 6 % 2 == 1};
}

// Runs a problem on one path. "" if the outputs are right, else what is wrong.
std::string run_path(const Device& device, const harness::AlignProblem& problem, ty_align_path path,
                     const harness::AlignOutputs& want, Tally& tally) {
  const harness::AlignOptions options = options_of(problem, path);
  harness::AlignOutputs got;
  const Status status = harness::run_align(device.id, problem, options, got);
  if (status.code() == TY_UNSUPPORTED && path != TY_ALIGN_AUTO) {
    ++tally.refused;
    return "";
  }
  ++tally.runs;
  if (!status.ok()) return status.message();
  return harness::difference(got, options.optional_outputs ? want : harness::required_outputs(want));
}

// Runs a problem on each path and prints what is wrong with the command that shows it again.
bool is_right(const Device& device, const std::vector<ty_align_path>& paths, const harness::AlignShape& shape,
              Tally& tally) {
  const harness::AlignProblem problem = harness::draw(shape);
  const harness::AlignOutputs want = harness::expected(problem);
  bool right = true;
  const auto complain = [&](const std::string& wrong, ty_align_path path) {
    clear_progress();
    const std::string& word = word_of(path_choices(), path);
    fmt::print("{}, path {}: {}\n  {} --device {} --path {}\n", device.backend->name, word, wrong,
               shape.command(), device.backend->name, word);
    right = false;
  };
  // What equals the reference keeps the promises that the reference keeps: it is asked once.
  const std::string broken = harness::broken_promise(problem, want);
  if (!broken.empty())
    complain(fmt::format("the reference itself breaks the contract: {}", broken), TY_ALIGN_AUTO);
  for (ty_align_path path : paths) {
    const std::string wrong = run_path(device, problem, path, want, tally);
    if (!wrong.empty()) complain(wrong, path);
  }
  return right;
}

void VerifyCommand::run() const {
  const Device device = open_device(device_name);
  expect_path(device, path.value_or(TY_ALIGN_AUTO));
  const std::vector<ty_align_path> paths = path ? std::vector{*path} : paths_of(device);
  if (one_shape) check_shape(shape);
  std::vector<std::string> path_words;
  path_words.reserve(paths.size());
  for (ty_align_path each : paths) path_words.push_back(word_of(path_choices(), each));
  fmt::print("verify on {}\n  path {}\n", device.description, fmt::join(path_words, ", "));
  if (!device.why_not_best.empty()) fmt::print("  {}\n", device.why_not_best);

  loop.run(shape.seed, one_shape, fmt::format("path {}", fmt::join(path_words, ", ")),
           [&](int64_t n, Tally& tally) { return is_right(device, paths, nth_shape(n), tally); });
}

}  // namespace

void add_verify(CLI::App& app) {
  auto command = std::make_shared<VerifyCommand>();
  CLI::App& verify = *app.add_subcommand("verify");
  verify.description(
      "Run random problems against the sequential reference.\n\n"
      "Draws problems of every kind that the contract allows and compares each output, bit for\n"
      "bit, with a plain sequential reference. A problem that fails is printed as a command.\n"
      "Without a subcommand it does so for align.");
  add_problem_options(verify, command->shape);
  CLI::Option* tokens = verify.get_option("--tokens");
  add_device_option(verify, command->device_name);
  add_path_option(verify, command->path, "auto, everywhere, grid or split; by default all in\nturn");
  command->loop.add_options(verify);
  CLI::Option* most = add_number(verify, "--max-pairs", command->max_pairs,
                                 "T*K of a drawn problem is at most this", {.low = 1});
  separate_given_from_drawn(verify, most);
  verify.footer(
      "With --tokens the shape is the one given, and only ids and map change with the seed.\n"
      "Exit code 1: an output differs.\n"
      "\nExamples:\n"
      "  tokenyard verify --seconds 60\n"
      "  tokenyard verify --device simt32 --count 50 --max-pairs 500\n"
      "  tokenyard verify --tokens 300 --top-k 8 --experts 256 --block 128 --seed 7");
  verify.require_subcommand(0, 1);
  add_verify_gate(verify);
  add_verify_route(verify);
  add_verify_training(verify);
  verify.callback([command, tokens, &verify] {
    if (!verify.get_subcommands().empty()) return;
    command->one_shape = tokens->count() > 0;
    command->run();
  });
}

}  // namespace tokenyard::cli
