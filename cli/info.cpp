// tokenyard info: what this build and this machine offer, and which path a shape takes.
#include <fmt/format.h>

#include "device_option.hpp"
#include "failure.hpp"
#include "harness/align_run.hpp"
#include "number.hpp"
#include "problem_options.hpp"
#include "subcommands.hpp"
#include "terminal.hpp"

namespace tokenyard::cli {
namespace {

struct InfoCommand {
  bool why = false;
  std::vector<int64_t> tokens{0, 1, 16, 64, 256, 1024, 4096, 16384, 65536};
  harness::AlignShape shape{.top_k = 8, .experts = 256, .block = 128};

  void run() const;
  void explain(const Terminal& terminal, const Device& device) const;
};

void InfoCommand::explain(const Terminal& terminal, const Device& device) const {
  fmt::print("\n{}  top-{} of {} experts, blocks of {}\n",
             terminal.paint(fmt::emphasis::bold, device.description), shape.top_k, shape.experts,
             shape.block);
  fmt::print("  {:>8}  {:>10}  {}\n", "tokens", "workspace", "path of align, and why");
  for (int64_t count : tokens) {
    harness::AlignShape sized = shape;
    sized.tokens = count;
    check_shape(sized);
    const ty_align_args args = harness::align_args(sized);
    size_t bytes = 0;
    char text[512];
    require(ty_align_workspace_size(device.id, &args, &bytes));
    require(ty_align_explain(device.id, &args, text, sizeof text));
    constexpr int kTextColumn = 24;
    fmt::print("  {:>8}  {:>10}  {}\n", count, fmt::format("{} B", bytes),
               fold_words(terminal, text, kTextColumn));
  }
}

void InfoCommand::run() const {
  const Terminal terminal = standard_output();
  fmt::print("{}\n", terminal.paint(fmt::emphasis::bold, fmt::format("tokenyard {}", ty_version())));
  for (const auto& [name, id] : backend_choices()) {
    const std::string missing = why_missing(id);
    if (!missing.empty()) {
      fmt::print("  {:<7} {}\n", name, terminal.paint(fmt::emphasis::faint, missing));
      continue;
    }
    for (int ordinal = 0; ordinal < find_backend(id)->runtime->device_count(); ++ordinal) {
      const Device device = open_device(fmt::format("{}:{}", name, ordinal));
      fmt::print("  {:<7} {}\n", name, device.description.substr(device.description.find(' ') + 1));
    }
  }
  fmt::print("  {:<7} {}\n", "best", open_device("best").backend->name);
  if (!why) return;
  for (const auto& [name, id] : backend_choices()) {
    if (why_missing(id).empty()) explain(terminal, open_device(name));
  }
}

}  // namespace

void add_info(CLI::App& app) {
  auto command = std::make_shared<InfoCommand>();
  CLI::App& info = *app.add_subcommand("info");
  info.description(
      "Show backends and devices, and which path runs which size.\n\n"
      "Lists the backends of this build and the devices that answer. With --why it says which\n"
      "path align takes on each of them for each number of tokens, and the reason.");
  info.add_flag("--why", command->why, "explain the choice of align's path");
  add_numbers(info, "--tokens", command->tokens, "T, with --why");
  add_number(info, "--top-k", command->shape.top_k, "K, experts that each token chooses");
  add_number(info, "--experts", command->shape.experts, "E");
  add_number(info, "--block", command->shape.block, "B, slots in a block");
  for (const char* option : {"--tokens", "--top-k", "--experts", "--block"}) {
    info.get_option(option)->needs("--why");
  }
  info.footer(
      "Examples:\n"
      "  tokenyard info\n"
      "  tokenyard info --why --experts 64 --top-k 6 --tokens 1,100,10000");
  info.callback([command] { command->run(); });
}

}  // namespace tokenyard::cli
