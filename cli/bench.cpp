// tokenyard bench: times an operation, every case verified before and after.
#include <fmt/format.h>

#include <memory>

#include "bench_inputs.hpp"
#include "bench_result.hpp"
#include "device_option.hpp"
#include "failure.hpp"
#include "number.hpp"
#include "problem_options.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "timing.hpp"

namespace tokenyard::cli {
namespace {

using harness::AlignShape;
using harness::Distribution;

struct BenchAlignCommand {
  std::vector<int64_t> tokens{1, 16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536};
  std::vector<int32_t> experts{256}, top_k{8}, block{128};
  std::vector<Distribution> distributions{Distribution::kUniform};
  std::string loads_file;
  bool int64_ids = false;
  bool optional_outputs = false;
  bool cold = false;
  bool linked = false;
  bool with_baselines = false;
  bool with_candidates = false;
  uint64_t seed = 0;
  std::string device_name = "best";
  std::optional<ty_align_path> path;
  std::string json_file;
  std::string command_line;

  struct Case {
    const Routing& routing;
    AlignShape shape;
  };

  void run() const;
  std::vector<Routing> routings() const;
  std::vector<Case> cases(const std::vector<Routing>& routings) const;
  void measure(const Device& device, const Case& one, const BenchTable& table, Json& results) const;
};

// The path's name, with which its explanation begins: "grid: …", or "grid, as asked for: …".
std::string path_taken(const Device& device, const AlignShape& shape, ty_align_path path) {
  char text[512];
  const ty_align_args args = harness::align_args(shape, path);
  require(ty_align_explain(device.id, &args, text, sizeof text));
  const std::string explanation = text;
  return explanation.substr(0, explanation.find_first_of(":,"));
}

bool can_link(const Device& device) {
  DeviceProperties properties;
  require(device.runtime().properties(device.id.ordinal, properties));
  return properties.linked;
}

std::vector<Routing> BenchAlignCommand::routings() const {
  if (!loads_file.empty()) return {Routing(loads_file)};
  return {distributions.begin(), distributions.end()};
}

std::vector<BenchAlignCommand::Case> BenchAlignCommand::cases(const std::vector<Routing>& routings) const {
  std::vector<Case> all;
  for (int32_t e : experts) {
    for (int32_t k : top_k) {
      for (int32_t b : block) {
        for (const Routing& routing : routings) {
          for (int64_t t : tokens) {
            all.push_back({routing, routing.with({.tokens = t,
                                                  .top_k = k,
                                                  .experts = e,
                                                  .block = b,
                                                  .int64_ids = int64_ids,
                                                  .seed = seed})});
            check_shape(all.back().shape);
          }
        }
      }
    }
  }
  return all;
}

void print(const BenchTable& table, const Json& row) {
  const Json& way = row["path"].is_null() ? row["impl"] : row["path"];
  table.print(
      {fmt::to_string(row["tokens"].get<int64_t>()), k_of_e(row), fmt::to_string(row["block"].get<int>()),
       row["distribution"].get<std::string>(), way.get<std::string>()},
      row);
}

void BenchAlignCommand::measure(const Device& device, const Case& one, const BenchTable& table,
                                Json& results) const {
  const ty_align_path wanted = path.value_or(TY_ALIGN_AUTO);
  AlignTimer timer(device, rotated_inputs(one.routing, one.shape, kCallsInGraph),
                   {.path = wanted, .optional_outputs = optional_outputs, .linked = linked});
  std::vector<Implementation> implementations{library(device, timer.args(), timer.stream())};
  const auto add = [&](std::vector<Implementation> others) {
    std::move(others.begin(), others.end(), std::back_inserter(implementations));
  };
  if (with_baselines) add(baselines(device, timer.args(), timer.stream()));
  if (with_candidates) add(candidates(device, timer.args(), timer.stream()));
  for (const Implementation& implementation : implementations) {
    const auto verify = [&](const char* when) {
      const std::string wrong = timer.difference(implementation);
      if (wrong.empty()) return;
      throw Failure(
          fmt::format("{}: wrong {} the measurement of {} tokens x {} of {}, blocks of {}, {} ids: {}",
                      implementation.name, when, one.shape.tokens, one.shape.top_k, one.shape.experts,
                      one.shape.block, one.routing.name(), wrong));
    };
    const Caches caches = cold ? Caches::kCold : Caches::kWarm;
    verify("before");
    const Timing timing = timer.measure(implementation, caches);
    verify("after");
    const bool is_ours = &implementation == &implementations.front();
    results.push_back(with_timing({{"op", "align"},
                                   {"impl", implementation.name},
                                   {"path", is_ours ? Json(path_taken(device, one.shape, wanted)) : Json()},
                                   {"tokens", one.shape.tokens},
                                   {"top_k", one.shape.top_k},
                                   {"experts", one.shape.experts},
                                   {"block", one.shape.block},
                                   {"dtype", one.shape.int64_ids ? "int64" : "int32"},
                                   {"distribution", one.routing.name()},
                                   {"order", implementation.stable ? "stable" : "any"},
                                   {"padding_written", true},
                                   {"cold", cold},
                                   {"linked", linked}},
                                  timing));
    clear_progress();
    print(table, results.back());
  }
}

void BenchAlignCommand::run() const {
  const Device device = open_timed_device(device_name);
  if (cold && !device.is_gpu()) {
    throw wrong_usage("--cold is given, expected a GPU: by the clock nothing is timed with cold caches");
  }
  if (linked && !can_link(device)) {
    throw wrong_usage(fmt::format(
        "--linked is given, expected a device that can begin a launch early, not {}", device.description));
  }
  if (with_baselines && device.id.backend != TY_CUDA) {
    throw wrong_usage(
        fmt::format("--baselines is given, expected --device cuda, not {}: they are written in CUDA",
                    device.backend->name));
  }
  expect_path(device, path.value_or(TY_ALIGN_AUTO));
  const std::vector<Routing> all_routings = routings();
  const std::vector<Case> all = cases(all_routings);
  ResultFile file(json_file);
  fmt::print(stderr, "bench align on {}\n  {}, {} inputs in rotation\n", device.description,
             timer_name(device), kCallsInGraph);
  if (!device.why_not_best.empty()) fmt::print(stderr, "  {}\n", device.why_not_best);

  const BenchTable table({{"tokens", 7}, {"K of E", 9}, {"block", 5}, {"ids", 17}, {"path", 11}});
  Json results = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    show_progress(fmt::format("case {} of {}: {} tokens", i + 1, all.size(), all[i].shape.tokens));
    measure(device, all[i], table, results);
  }
  file.write(device, command_line, results);
}

void add_bench_align(CLI::App& bench, const std::string& command_line) {
  auto command = std::make_shared<BenchAlignCommand>();
  command->command_line = command_line;
  CLI::App& align = *bench.add_subcommand("align");
  align.description(
      "Time align over shapes and routings.\n\n"
      "Times align for every combination of the lists given, in µs a call: 20 calls in a graph,\n"
      "each with ids of its own, median and spread of 60 replays; on a CPU, each call by the clock.");
  add_numbers(align, "--tokens", command->tokens, "T, rows of topk_ids [T, K]");
  CLI::Option* top_k = add_numbers(align, "--top-k", command->top_k, "K, experts that each token chooses");
  CLI::Option* experts = add_numbers(align, "--experts", command->experts, "E");
  add_numbers(align, "--block", command->block, "B, slots in a block");
  CLI::Option* distribution = add_choice_list(
      align, "--distribution", distribution_choices(), command->distributions,
      "uniform, zipf (exponent 1.2), hot (one expert\nthat all tokens name), one (all pairs on one)");
  align
      .add_option("--loads", command->loads_file,
                  "draw ids to the expert loads of a real model:\na file of bench/harness/loads")
      ->type_name("FILE")
      ->excludes(top_k)
      ->excludes(experts)
      ->excludes(distribution);
  add_number(align, "--seed", command->seed, "of the ids");
  align.add_flag("--int64", command->int64_ids, "ids as int64");
  CLI::Option* all_outputs = align.add_flag("--all-outputs", command->optional_outputs,
                                            "the optional outputs too: counts, offsets,\n"
                                            "inverse, block_rows, num_dropped");
  align.add_flag(
      "--cold", command->cold,
      "overwrite the caches before each call; the time\nthat this takes is measured and taken off");
  CLI::Option* linked = align.add_flag("--linked", command->linked,
                                       "link each call to the one before: it begins while\nthat ends");
#ifdef TOKENYARD_BASELINES
  align
      .add_flag("--baselines", command->with_baselines,
                "beside each case, other designs on the same\ninputs (bench/baselines), up to 1024 experts")
      ->excludes(all_outputs)
      ->excludes(linked);
#ifdef TOKENYARD_CANDIDATES
  align
      .add_flag("--candidates", command->with_candidates,
                "beside each case, the launches that tuning chose\nfrom (bench/candidates)")
      ->excludes(all_outputs)
      ->excludes(linked);
#endif
#else
  static_cast<void>(all_outputs);
  static_cast<void>(linked);
#endif
  add_device_option(align, command->device_name);
  add_path_option(align, command->path, "auto, everywhere, grid or split");
  align.add_option("--json", command->json_file, "write context and results there")->type_name("FILE");
  align.footer(
      "Columns: p20, p50, p80 of the time on the device; floor, an empty kernel timed likewise;\n"
      "host ns, the caller's time for one call. Every case is verified before and after.\n"
      "\nExamples:\n"
      "  tokenyard bench align --json align.json\n"
      "  tokenyard bench align --tokens 1,64,4096 --distribution uniform,zipf,hot,one\n"
      "  tokenyard bench align --path split --experts 128,256 --top-k 8");
  align.callback([command] { command->run(); });
}

}  // namespace

void add_bench(CLI::App& app, const std::string& command_line) {
  CLI::App& bench = *app.add_subcommand("bench", "Time an operation, every case verified.");
  bench.require_subcommand(1);
  bench.footer("Example:\n  tokenyard bench align --json align.json");
  add_bench_align(bench, command_line);
  add_bench_gate(bench, command_line);
  add_bench_route(bench, command_line);
  add_bench_training(bench, command_line);
}

}  // namespace tokenyard::cli
