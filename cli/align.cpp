// tokenyard align: sorts one problem, shows what came out.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include "device_option.hpp"
#include "failure.hpp"
#include "harness/align_run.hpp"
#include "harness/loads.hpp"
#include "npy.hpp"
#include "picture.hpp"
#include "problem_options.hpp"
#include "subcommands.hpp"
#include "summary.hpp"
#include "terminal.hpp"
#include "timing.hpp"

namespace tokenyard::cli {
namespace {

constexpr int64_t kVerifiedUnasked = 1 << 20;  // pairs up to which the reference takes no noticeable time

struct AlignCommand {
  harness::AlignShape shape{.tokens = 12, .top_k = 2, .experts = 6, .block = 4};
  bool tokens_given = false;
  std::string ids_file, loads_file, map_file, out_directory;
  std::string device_name = "best";
  std::optional<ty_align_path> path;
  std::optional<bool> verify;
  bool by_load = false;

  void run() const;
  harness::AlignProblem problem() const;
  harness::AlignProblem problem_of_ids() const;
  harness::AlignProblem problem_of_loads() const;
  std::vector<int32_t> expert_map(harness::AlignShape& filled) const;
};

std::vector<int32_t> AlignCommand::expert_map(harness::AlignShape& filled) const {
  if (map_file.empty()) {
    if (filled.local_experts == 0) return {};
    throw wrong_usage("--local-experts needs --expert-map here, which says which experts they are");
  }
  const IntegerArray file = read_npy("--expert-map", map_file, 1);
  if (static_cast<int64_t>(file.values.size()) != filled.experts) {
    throw wrong_usage(fmt::format("--expert-map: {} has {} entries, expected one for each of the {} experts",
                                  map_file, file.values.size(), filled.experts));
  }
  const auto fits = [](int64_t local) { return local >= INT32_MIN && local <= INT32_MAX; };
  if (!std::all_of(file.values.begin(), file.values.end(), fits)) {
    throw wrong_usage(
        fmt::format("--expert-map: {} has an entry beyond int32, expected local experts or -1", map_file));
  }
  std::vector<int32_t> map(file.values.begin(), file.values.end());
  if (filled.local_experts == 0)
    filled.local_experts = std::clamp(*std::max_element(map.begin(), map.end()), 0, INT32_MAX - 1) + 1;
  return map;
}

harness::AlignProblem AlignCommand::problem_of_ids() const {
  IntegerArray file = read_npy("--ids", ids_file, 2);
  harness::AlignShape filled = shape;
  filled.tokens = static_cast<int64_t>(file.shape[0]);
  filled.top_k = static_cast<int32_t>(file.shape[1]);
  filled.int64_ids = shape.int64_ids || !file.fits_int32;
  std::vector<int32_t> map = expert_map(filled);
  check_shape(filled);
  return harness::from_ids(filled, std::move(file.values), std::move(map));
}

harness::AlignProblem AlignCommand::problem_of_loads() const {
  const harness::Loads loads = harness::read_loads(loads_file);
  harness::AlignShape filled = shape;
  filled.top_k = loads.top_k;
  filled.experts = loads.experts;
  if (!tokens_given) filled.tokens = loads.tokens;
  if (map_file.empty()) static_cast<void>(expert_map(filled));  // none, or an error
  check_shape(filled);
  return harness::draw_to_loads(filled, loads);
}

harness::AlignProblem AlignCommand::problem() const {
  if (!ids_file.empty()) return problem_of_ids();
  if (loads_file.empty()) check_shape(shape);
  harness::AlignProblem drawn = loads_file.empty() ? harness::draw(shape) : problem_of_loads();
  if (map_file.empty()) return drawn;
  harness::AlignShape filled = drawn.shape;
  std::vector<int32_t> map = expert_map(filled);
  return harness::from_ids(filled, std::move(drawn.ids), std::move(map));
}

// Of a call with every output.
std::string path_and_reason(const Device& device, const harness::AlignShape& shape, ty_align_path path) {
  static int32_t some_memory = 0;  // says that an output is wanted; nobody writes it
  char text[512];
  ty_align_args args = harness::align_args(shape, path);
  args.counts = &some_memory;
  require(ty_align_explain(device.id, &args, text, sizeof text));
  return text;
}

void write_outputs(const std::string& directory, const harness::AlignProblem& problem,
                   const harness::AlignOutputs& outputs) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw Failure(fmt::format("--out: cannot make the folder {}: {}", directory, error.message()));
  const auto file = [&](const char* name) {
    return (std::filesystem::path(directory) / fmt::format("{}.npy", name)).string();
  };
  const auto write = [&](const char* name, const std::vector<int32_t>& values) {
    write_npy(file(name), {values.size()}, values);
  };
  const std::vector<size_t> token_shape{static_cast<size_t>(problem.shape.tokens),
                                        static_cast<size_t>(problem.shape.top_k)};
  if (problem.shape.int64_ids) {
    write_npy(file("topk_ids"), token_shape, problem.ids);
  } else {
    write_npy(file("topk_ids"), token_shape, std::vector<int32_t>(problem.ids.begin(), problem.ids.end()));
  }
  if (!problem.expert_map.empty()) write("expert_map", problem.expert_map);
  write_npy(file("inverse"), token_shape, outputs.inverse);
  write("sorted_pair_ids", outputs.sorted_pair_ids);
  write("block_expert", outputs.block_expert);
  write("block_rows", outputs.block_rows);
  write("counts", outputs.counts);
  write("offsets", outputs.offsets);
  write("num_padded", {outputs.num_padded});
  write("num_dropped", {outputs.num_dropped});
}

void AlignCommand::run() const {
  const Terminal terminal = standard_output();
  const Device device = open_device(device_name);
  const harness::AlignProblem input = problem();
  const harness::AlignOptions options{.path = path.value_or(TY_ALIGN_AUTO)};
  expect_path(device, options.path);
  harness::AlignOutputs outputs;
  require(harness::run_align(device.id, input, options, outputs));
  if (!out_directory.empty()) write_outputs(out_directory, input, outputs);

  fmt::print("{}  {} tokens x {} of {} experts, blocks of {}\n", terminal.paint(fmt::emphasis::bold, "align"),
             input.shape.tokens, input.shape.top_k, input.shape.experts, input.shape.block);
  const Summary summary(terminal);
  summary.device(device);
  summary.line("path", "{}", path_and_reason(device, input.shape, options.path));
  if (!input.expert_map.empty()) {
    summary.line("map", "{} global experts, {} local", input.shape.experts, input.num_local_experts());
  }
  summary.order(input, outputs);
  if (!device.is_simulated()) {
    AlignTimer timer(device, {input}, options);
    summary.time(device, timer.measure(library(device, timer.args(), timer.stream())));
  }
  std::string wrong;
  if (verify.value_or(input.num_pairs() <= kVerifiedUnasked)) {
    wrong = harness::difference(outputs, harness::expected(input));
    if (wrong.empty()) wrong = harness::broken_promise(input, outputs);
    summary.verified(wrong, "every output equals the sequential reference");
  }
  fmt::print("\n{}",
             fits_blocks_picture(input)
                 ? blocks_picture(terminal, input, outputs)
                 : loads_picture(terminal, outputs.counts, by_load ? LoadOrder::kByLoad : LoadOrder::kById));
  if (!wrong.empty()) throw Failure(fmt::format("the result is wrong: {}", wrong));
}

}  // namespace

void add_align(CLI::App& app) {
  auto command = std::make_shared<AlignCommand>();
  CLI::App& align = *app.add_subcommand("align");
  align.description(
      "Sort one problem and show what came out.\n\n"
      "Sorts the (token, expert) pairs of topk_ids [T, K] by expert and pads each expert's run\n"
      "to whole blocks of B slots. Small problems are drawn slot by slot, large ones as loads.");
  add_problem_options(align, command->shape);

  CLI::Option* ids =
      align.add_option("--ids", command->ids_file, "ids from a .npy file, [T, K] integers, row-major");
  CLI::Option* loads =
      align.add_option("--loads", command->loads_file,
                       "draw ids to the expert loads of a real model:\na file of bench/harness/loads");
  align.add_option("--expert-map", command->map_file, "[E] integers: global id -> local id, or -1");
  align.add_option("--out", command->out_directory, "write every output as a .npy file there");
  for (const char* option : {"--ids", "--loads", "--expert-map"}) align.get_option(option)->type_name("FILE");
  align.get_option("--out")->type_name("FOLDER");
  ids->excludes(loads);
  for (const char* drawn : {"--tokens", "--top-k", "--distribution", "--invalid-ids", "--duplicates"}) {
    ids->excludes(align.get_option(drawn));
  }
  for (const char* recorded : {"--top-k", "--experts", "--distribution", "--invalid-ids", "--duplicates"}) {
    loads->excludes(align.get_option(recorded));
  }
  ids->needs(align.get_option("--experts"))->needs(align.get_option("--block"));

  add_device_option(align, command->device_name);
  add_path_option(align, command->path, "auto, everywhere, grid or split: the same bits,\nanother time");
  align.add_flag_function(
      "--verify,!--no-verify", [command](int64_t given) { command->verify = given > 0; },
      "compare with the reference; by default for up\nto 2^20 pairs");
  align.add_flag("--by-load", command->by_load, "show the experts' loads highest first, not by id");
  align.footer(
      "Examples:\n"
      "  tokenyard align\n"
      "  tokenyard align --tokens 4096 --top-k 8 --experts 256 --block 128 --distribution zipf\n"
      "  tokenyard align --ids topk_ids.npy --experts 64 --block 64 --out aligned/\n"
      "\nOutputs (int32): sorted_pair_ids [capacity] holds flat indices t*K+k, padding T*K;\n"
      "block_expert and block_rows [capacity/B]; counts [E]; offsets [E+1]; inverse [T, K],\n"
      "a pair's slot or -1; num_padded [1], slots in use; num_dropped [1], invalid pairs.");
  align.callback([command, &align] {
    command->tokens_given = align.count("--tokens") > 0;
    command->run();
  });
}

}  // namespace tokenyard::cli
