// tokenyard bench gate: times gate over batch sizes and kinds of logits, every case verified.
#include <fmt/format.h>

#include "bench_inputs.hpp"
#include "bench_result.hpp"
#include "failure.hpp"
#include "gate_options.hpp"
#include "harness/gate_run.hpp"
#include "number.hpp"
#include "run_timing.hpp"
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
  GateTimer timer(device, rotated_inputs(sized, kCallsInGraph), {.lanes = lanes, .optional_outputs = false});
  // Against the CPU, which is held to the reference by its own tests.
  const auto mistake = [](const GateProblem& problem, const harness::GateOutputs& got) {
    harness::GateOutputs want;
    require(harness::run_gate({TY_CPU, 0}, problem, {.optional_outputs = !got.counts.empty()}, want));
    return harness::mistake(problem, got, want);
  };
  const auto verify = [&](const char* when) {
    const std::string wrong = timer.first(mistake);
    if (wrong.empty()) return;
    throw Failure(fmt::format("{} tokens: wrong {} the measurement: {}; {}", sized.tokens, when, wrong,
                              sized.command()));
  };
  verify("before");
  const Timing timing = timer.measure();
  verify("after");
  // Every call of a graph reads other logits, which may lie in the second-level cache.
  return with_timing({{"op", "gate"},
                      {"impl", "tokenyard"},
                      {"preset", preset.empty() ? Json(nullptr) : Json(preset)},
                      {"path", lanes_taken(device, sized, lanes)},
                      {"tokens", sized.tokens},
                      {"top_k", sized.top_k},
                      {"experts", sized.experts},
                      {"dtype", word_of(logits_dtype_choices(), sized.dtype)},
                      {"distribution", word_of(logits_choices(), sized.logits)},
                      {"cold", false}},
                     timing);
}

void BenchGateCommand::run() const {
  const Device device = open_timed_device(device_name);
  expect_lanes(device, lanes);
  const std::vector<GateShape> cases = shapes();
  ResultFile file(json_file);
  fmt::print(stderr, "bench gate on {}\n  {}, {} inputs in rotation\n", device.description,
             timer_name(device), kCallsInGraph);
  const BenchTable table({{"tokens", 7}, {"K of E", 9}, {"dtype", 9}, {"logits", 9}, {"path", 17}});
  Json results = Json::array();
  for (const GateShape& each : cases) {
    show_progress(fmt::format("case {} of {}: {} tokens", results.size() + 1, cases.size(), each.tokens));
    const Json row = measure(device, each);
    clear_progress();
    table.print({fmt::to_string(each.tokens), k_of_e(row), row["dtype"], row["distribution"], row["path"]},
                row);
    results.push_back(row);
  }
  file.write(device, command_line, results);
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
  add_numbers(gate, "--tokens", command->tokens, "T, rows of the logits [T, E]");
  add_choice_list(gate, "--dtype", logits_dtype_choices(), command->dtypes, "float32, bfloat16, float16");
  add_choice_list(gate, "--logits", logits_choices(), command->logits,
                  "normal, low (-20), high (20), extreme (+-200),\nties, equal, ascending, special, nan");
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
