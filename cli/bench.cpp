// tokenyard bench: times an operation, every case verified before and after.
#include <fmt/format.h>

#include <cmath>

#include "bench_results.hpp"
#include "device_option.hpp"
#include "failure.hpp"
#include "harness/problem.hpp"
#include "problem_options.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"
#include "timing.hpp"

namespace tokenyard::cli {
namespace {

using harness::AlignProblem;
using harness::AlignShape;
using harness::Distribution;

struct BenchAlignCommand {
  std::vector<int64_t> tokens{1, 16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536};
  std::vector<int32_t> experts{256}, top_k{8}, block{128};
  std::vector<Distribution> distributions{Distribution::kUniform};
  bool int64_ids = false;
  bool optional_outputs = false;
  uint64_t seed = 0;
  std::string device_name = "best";
  std::optional<ty_align_path> path;
  std::string json_file;
  std::string command_line;

  void run() const;
  std::vector<AlignShape> shapes() const;
  Json measure(const Device& device, const AlignShape& shape) const;
};

// Draws the inputs of the calls in a graph. Few tokens: other ones each. Many: one draw, read from another
// row on by each, which is as good for the time and does not take minutes to draw.
std::vector<AlignProblem> rotated_inputs(const AlignShape& shape) {
  constexpr int64_t kLargestPool = 20'480;
  AlignShape pool_shape = shape;
  pool_shape.tokens = std::max(shape.tokens, std::min(shape.tokens * kCallsInGraph, kLargestPool));
  const std::vector<int64_t> pool = harness::draw(pool_shape).ids;
  std::vector<AlignProblem> inputs;
  for (int64_t i = 0; i < kCallsInGraph; ++i) {
    const int64_t first = i * pool_shape.tokens / kCallsInGraph * shape.top_k;
    std::vector<int64_t> ids(static_cast<size_t>(shape.tokens) * shape.top_k);
    for (size_t j = 0; j < ids.size(); ++j) ids[j] = pool[(first + j) % pool.size()];
    inputs.push_back(harness::from_ids(shape, std::move(ids)));
  }
  return inputs;
}

// The path's name, with which its explanation begins: "grid: …", or "grid, as asked for: …".
std::string path_taken(const Device& device, const AlignShape& shape, ty_align_path path) {
  char text[512];
  const ty_align_args args = call_of(shape, path);
  require(ty_align_explain(device.id, &args, text, sizeof text));
  const std::string explanation = text;
  return explanation.substr(0, explanation.find_first_of(":,"));
}

std::vector<AlignShape> BenchAlignCommand::shapes() const {
  std::vector<AlignShape> all;
  for (int32_t e : experts) {
    for (int32_t k : top_k) {
      for (int32_t b : block) {
        for (Distribution distribution : distributions) {
          for (int64_t t : tokens) {
            all.push_back({.tokens = t,
                           .top_k = k,
                           .experts = e,
                           .block = b,
                           .int64_ids = int64_ids,
                           .distribution = distribution,
                           .seed = seed});
            check_shape(all.back());
          }
        }
      }
    }
  }
  return all;
}

Json BenchAlignCommand::measure(const Device& device, const AlignShape& shape) const {
  const ty_align_path wanted = path.value_or(TY_ALIGN_AUTO);
  AlignTimer timer(device, rotated_inputs(shape), {.path = wanted, .optional_outputs = optional_outputs});
  const auto verify = [&](const char* when) {
    const std::string wrong = timer.difference();
    if (!wrong.empty()) {
      throw Failure(fmt::format("{} tokens: wrong {} the measurement: {}; {}", shape.tokens, when, wrong,
                                shape.command()));
    }
  };
  verify("before");
  const Timing timing = timer.measure();
  verify("after");
  return {{"op", "align"},
          {"impl", "tokenyard"},
          {"path", path_taken(device, shape, wanted)},
          {"tokens", shape.tokens},
          {"top_k", shape.top_k},
          {"experts", shape.experts},
          {"block", shape.block},
          {"dtype", shape.int64_ids ? "int64" : "int32"},
          {"distribution", word_of(distribution_choices(), shape.distribution)},
          {"order", "stable"},
          {"padding_written", true},
          {"cold", true},  // every call of a graph reads other ids
          {"floor_us", or_null(timing.floor_us)},
          {"us_p20", rounded(timing.us.p20)},
          {"us_p50", rounded(timing.us.p50)},
          {"us_p80", rounded(timing.us.p80)},
          {"host_ns", std::round(timing.host_ns)},
          {"verified", true}};
}

void print_header() {
  fmt::print("{:>7} {:>9} {:>5} {:>8} {:>11} {:>8} {:>8} {:>8} {:>6} {:>8}\n", "tokens", "K of E", "block",
             "ids", "path", "p20 µs", "p50 µs", "p80 µs", "floor", "host ns");
}

void print_row(const Json& row) {
  const std::string floor =
      row["floor_us"].is_null() ? "-" : fmt::format("{:.2f}", row["floor_us"].get<double>());
  fmt::print("{:>7} {:>9} {:>5} {:>8} {:>11} {:>8.2f} {:>8.2f} {:>8.2f} {:>6} {:>8.0f}\n",
             row["tokens"].get<int64_t>(),
             fmt::format("{} of {}", row["top_k"].get<int>(), row["experts"].get<int>()),
             row["block"].get<int>(), row["distribution"].get<std::string>(), row["path"].get<std::string>(),
             row["us_p20"].get<double>(), row["us_p50"].get<double>(), row["us_p80"].get<double>(), floor,
             row["host_ns"].get<double>());
  std::fflush(stdout);
}

void BenchAlignCommand::run() const {
  const Device device = open_benchmarked(device_name);
  const std::vector<AlignShape> cases = shapes();
  ResultFile file(json_file);
  announce("align", device);
  print_header();
  Json results = Json::array();
  for (const AlignShape& shape : cases) {
    show_progress(fmt::format("case {} of {}: {} tokens", results.size() + 1, cases.size(), shape.tokens));
    const Json row = measure(device, shape);
    clear_progress();
    print_row(row);
    results.push_back(row);
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
  const auto list = [&](const char* option, auto& target, const char* description) {
    align.add_option(option, target, description)->delimiter(',')->type_name("N,...")->capture_default_str();
  };
  list("--tokens", command->tokens, "T, rows of topk_ids [T, K]");
  list("--top-k", command->top_k, "K, experts that each token chooses");
  list("--experts", command->experts, "E");
  list("--block", command->block, "B, slots in a block");
  add_choice_list(
      align, "--distribution", distribution_choices(), command->distributions,
      "uniform, zipf (exponent 1.2), hot (one expert\nthat all tokens name), one (all pairs on one);\n"
      "by default uniform");
  align.add_option("--seed", command->seed, "of the ids")->type_name("N")->capture_default_str();
  align.add_flag("--int64", command->int64_ids, "ids as int64");
  align.add_flag("--all-outputs", command->optional_outputs,
                 "the optional outputs too: counts, offsets,\ninverse, block_rows, num_dropped");
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
  CLI::App& bench = *app.add_subcommand("bench", "Time an operation, every case verified");
  bench.require_subcommand(1);
  bench.footer("Example:\n  tokenyard bench align --json align.json");
  add_bench_align(bench, command_line);
  add_bench_gate(bench, command_line);
}

}  // namespace tokenyard::cli
