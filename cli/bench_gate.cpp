// tokenyard bench gate: times gate over batch sizes and kinds of logits, every case verified.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "bench_result.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "gate_timing.hpp"
#include "harness/gate_run.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

using harness::GateProblem;
using harness::GateShape;
using harness::Logits;

struct BenchGateCommand {
  std::vector<int64_t> tokens{1, 64, 1024, 4096, 16384, 65536};
  std::vector<ty_dtype> dtypes{TY_BFLOAT16};
  std::vector<Logits> logits{Logits::kNormal};
  GateShape shape{.experts = 256, .top_k = 8};
  int32_t lanes = 0;
  std::string preset;
  std::string device_name = "best";
  std::string json_file;
  std::string command_line;

  void run() const;
  std::vector<GateShape> shapes() const;
  Json measure(const Device& device, const GateShape& shape) const;
};

double rounded(double value) { return std::round(1000 * value) / 1000; }

// Few tokens: other ones for each call in a graph. Many: one draw, read from another row on by each.
std::vector<GateProblem> rotated_inputs(const GateShape& shape) {
  constexpr int64_t kLargestPool = 20'480;
  GateShape pool_shape = shape;
  pool_shape.tokens = std::min(shape.tokens * kCallsInGraph, kLargestPool);
  const GateProblem pool = harness::draw(pool_shape);
  std::vector<GateProblem> inputs;
  for (int64_t i = 0; i < kCallsInGraph; ++i) {
    GateProblem input = pool;
    input.shape = shape;
    input.logits.resize(static_cast<size_t>(shape.tokens * shape.experts));
    const auto first = static_cast<size_t>(i * pool_shape.tokens / kCallsInGraph * shape.experts);
    for (size_t j = 0; j < input.logits.size(); ++j) {
      input.logits[j] = pool.logits[(first + j) % pool.logits.size()];
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string lanes_taken(const Device& device, const GateShape& shape, int32_t lanes) {
  char text[512];
  ty_gate_args args = harness::gate_args(shape);
  args.lanes = lanes;
  require(ty_gate_explain(device.id, &args, text, sizeof text));
  const std::string explanation = text;
  return explanation.substr(0, explanation.find_first_of(":,"));
}

std::vector<GateShape> BenchGateCommand::shapes() const {
  std::vector<GateShape> all;
  for (const ty_dtype dtype : dtypes) {
    for (const Logits kind : logits) {
      for (const int64_t t : tokens) {
        all.push_back(shape);
        all.back().dtype = dtype;
        all.back().logits = kind;
        all.back().tokens = t;
        check_shape(all.back());
      }
    }
  }
  return all;
}

Json BenchGateCommand::measure(const Device& device, const GateShape& sized) const {
  GateTimer timer(device, rotated_inputs(sized), {.lanes = lanes, .optional_outputs = false});
  const auto verify = [&](const char* when) {
    const std::string wrong = timer.mistake();
    if (!wrong.empty()) {
      throw Failure(fmt::format("{} tokens: wrong {} the measurement: {}; {}", sized.tokens, when, wrong,
                                sized.command()));
    }
  };
  verify("before");
  const Timing timing = timer.measure();
  verify("after");
  return {
      {"op", "gate"},
      {"impl", "tokenyard"},
      {"preset", preset.empty() ? Json(nullptr) : Json(preset)},
      {"path", lanes_taken(device, sized, lanes)},
      {"tokens", sized.tokens},
      {"top_k", sized.top_k},
      {"experts", sized.experts},
      {"dtype", word_of(logits_dtype_choices(), sized.dtype)},
      {"distribution", word_of(logits_choices(), sized.logits)},
      {"cold", false},  // every call of a graph reads other logits, which may lie in the second-level cache
      {"floor_us", timing.floor_us ? Json(*timing.floor_us) : Json(nullptr)},
      {"us_p20", rounded(timing.us.p20)},
      {"us_p50", rounded(timing.us.p50)},
      {"us_p80", rounded(timing.us.p80)},
      {"host_ns", std::round(timing.host_ns)},
      {"verified", true}};
}

void print_gate_header() {
  fmt::print("{:>7} {:>9} {:>9} {:>9} {:>17} {:>8} {:>8} {:>8} {:>6} {:>8}\n", "tokens", "K of E", "dtype",
             "logits", "path", "p20 µs", "p50 µs", "p80 µs", "floor", "host ns");
}

void print_gate_row(const Json& row) {
  const std::string floor =
      row["floor_us"].is_null() ? "-" : fmt::format("{:.2f}", row["floor_us"].get<double>());
  fmt::print("{:>7} {:>9} {:>9} {:>9} {:>17} {:>8.2f} {:>8.2f} {:>8.2f} {:>6} {:>8.0f}\n",
             row["tokens"].get<int64_t>(),
             fmt::format("{} of {}", row["top_k"].get<int>(), row["experts"].get<int>()),
             row["dtype"].get<std::string>(), row["distribution"].get<std::string>(),
             row["path"].get<std::string>(), row["us_p20"].get<double>(), row["us_p50"].get<double>(),
             row["us_p80"].get<double>(), floor, row["host_ns"].get<double>());
  std::fflush(stdout);
}

void BenchGateCommand::run() const {
  const Device device = open_device(device_name);
  if (device.is_simulated()) {
    throw wrong_usage(fmt::format(
        "--device is {}, expected a GPU or the CPU: a simulation's times say nothing", device.backend->name));
  }
  const std::vector<GateShape> cases = shapes();
  std::ofstream file;
  if (!json_file.empty()) {  // before the measurement, which may take long
    file.open(json_file);
    if (!file) throw Failure(fmt::format("--json: cannot write {}", json_file));
  }
  fmt::print(stderr, "bench gate on {}\n  {}, {} inputs in rotation\n", device.description,
             timer_name(device), kCallsInGraph);
  print_gate_header();
  Json results = Json::array();
  for (const GateShape& each : cases) {
    show_progress(fmt::format("case {} of {}: {} tokens", results.size() + 1, cases.size(), each.tokens));
    const Json row = measure(device, each);
    clear_progress();
    print_gate_row(row);
    results.push_back(row);
  }
  if (json_file.empty()) return;
  file << Json{{"context", to_context(device, command_line)}, {"results", results}}.dump(2) << "\n";
  if (!file.flush()) throw Failure(fmt::format("--json: cannot write {}", json_file));
}

}  // namespace

void add_bench_gate(CLI::App& bench, const std::string& command_line) {
  auto command = std::make_shared<BenchGateCommand>();
  command->command_line = command_line;
  CLI::App& gate = *bench.add_subcommand("gate");
  gate.description(
      "Time gate over numbers of tokens and kinds of logits.\n\n"
      "Times gate for every combination of --tokens, --dtype and --logits, in µs a call: 20 calls\n"
      "in a graph, each with logits of its own, median and spread of 60 replays; on a CPU, each\n"
      "call by the clock.");
  add_gate_options(gate, command->shape);
  for (const char* listed : {"--dtype", "--logits"}) gate.remove_option(gate.get_option(listed));
  CLI::Option* preset = add_preset_option(gate, command->shape);
  gate.add_option("--tokens", command->tokens, "T, rows of the logits [T, E]")
      ->delimiter(',')
      ->type_name("N,...")
      ->capture_default_str();
  add_choice_list(gate, "--dtype", logits_dtype_choices(), command->dtypes,
                  "float32, bfloat16, float16; by default bfloat16");
  add_choice_list(gate, "--logits", logits_choices(), command->logits,
                  "normal, low (-20), high (20), extreme (+-200),\nties, equal, ascending, special, nan; by "
                  "default\nnormal");
  add_device_option(gate, command->device_name);
  add_lanes_option(gate, command->lanes, "GPU lanes that share a token, 0: as tuned");
  gate.add_option("--json", command->json_file, "write context and results there")->type_name("FILE");
  gate.footer(
      "Examples:\n"
      "  tokenyard bench gate --preset deepseek-v3 --json gate.json\n"
      "  tokenyard bench gate --preset mixtral-8x7b --dtype bfloat16,float32\n"
      "  tokenyard bench gate --experts 256 --top-k 8 --score sigmoid --weights renormalized");
  gate.callback([command, preset] {
    if (preset->count() > 0) command->preset = preset->results().back();
    command->run();
  });
}

}  // namespace tokenyard::cli
