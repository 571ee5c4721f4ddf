#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "picture.hpp"

namespace tokenyard::cli {
namespace {

using fmt::terminal_color;

constexpr int64_t kMostPairsInPicture = 128;
constexpr int kMargin = 2;
const std::string kPad = "\u00b7";

const fmt::text_style kFaint = fmt::emphasis::faint;

fmt::text_style colour_of_expert(int32_t expert) {
  static constexpr std::array colours{terminal_color::bright_cyan,    terminal_color::bright_yellow,
                                      terminal_color::bright_magenta, terminal_color::bright_green,
                                      terminal_color::bright_blue,    terminal_color::bright_red};
  return fmt::fg(colours[static_cast<size_t>(expert) % colours.size()]);
}

// A piece of text that takes `width` columns on the screen, which its bytes don't tell, and a place as wide
// as its neighbours'.
struct Cell {
  std::string text;
  int width;
  int place;
};

Cell cell(const Terminal& terminal, const fmt::text_style& style, const std::string& text, int width,
          int place = 0) {
  return {terminal.paint(style, text), width, std::max(width, place)};
}

// Lays cells out after `head`, `gap` columns apart; what does not fit goes on under the first cell.
std::string fold(const Terminal& terminal, const Cell& head, const std::vector<Cell>& cells, int gap) {
  std::string out = head.text;
  int column = head.width;
  int blanks = gap;
  for (const Cell& next : cells) {
    if (column > head.width && column + blanks + next.width > terminal.width) {
      out += fmt::format("\n{:{}}", "", head.width);
      column = head.width;
      blanks = gap;
    }
    out += fmt::format("{:{}}{}", "", blanks, next.text);
    column += blanks + next.width;
    blanks = gap + next.place - next.width;
  }
  return out + '\n';
}

// The local expert of an id, -1 if the pair is dropped.
int32_t local_expert(const harness::AlignProblem& problem, int64_t id) {
  const int64_t expert = id - problem.shape.first_id;
  if (expert < 0 || expert >= problem.shape.experts) return -1;
  if (problem.expert_map.empty()) return static_cast<int32_t>(expert);
  const int32_t local = problem.expert_map[id];
  return local >= 0 && local < problem.shape.local_experts ? local : -1;
}

std::string pair_name(const harness::AlignProblem& problem, int64_t pair) {
  return fmt::format("{}.{}", pair / problem.shape.top_k, pair % problem.shape.top_k);
}

// "t3 0 5": a token and its experts, each in its colour, dropped ones in brackets.
std::vector<Cell> token_cells(const Terminal& terminal, const harness::AlignProblem& problem) {
  const int token_width = fmt::formatted_size("{}", std::max<int64_t>(problem.shape.tokens - 1, 0));
  size_t id_width = 1;
  for (int64_t id : problem.ids) {
    const int brackets = local_expert(problem, id) < 0 ? 2 : 0;
    id_width = std::max(id_width, fmt::formatted_size("{}", id) + brackets);
  }
  std::vector<Cell> cells;
  for (int64_t token = 0; token < problem.shape.tokens; ++token) {
    const std::string name = fmt::format("t{:<{}}", token, token_width);
    std::string text = terminal.paint(kFaint, name);
    for (int32_t k = 0; k < problem.shape.top_k; ++k) {
      const int64_t id = problem.ids[token * problem.shape.top_k + k];
      const int32_t local = local_expert(problem, id);
      const std::string shown = local < 0 ? fmt::format("({})", id) : fmt::format("{}", id);
      text += fmt::format("{:{}}", "", id_width + 1 - shown.size());
      text += terminal.paint(local < 0 ? kFaint : colour_of_expert(local), shown);
    }
    const int width = token_width + 1 + problem.shape.top_k * (static_cast<int>(id_width) + 1);
    cells.push_back({text, width, width});
  }
  return cells;
}

// The pairs of a block, then its padding: a dot a slot, or one dot and a number where they would not fit.
std::vector<Cell> slot_cells(const Terminal& terminal, const harness::AlignProblem& problem,
                             const harness::AlignOutputs& outputs, int64_t block, int room) {
  const int32_t size = problem.shape.block;
  const int64_t first = block * size;
  const int32_t rows = outputs.block_rows[block];
  const int place = static_cast<int>(pair_name(problem, problem.num_pairs() - 1).size());
  std::vector<Cell> cells;
  for (int64_t slot = first; slot < first + rows; ++slot) {
    const std::string name = pair_name(problem, outputs.sorted_pair_ids[slot]);
    const int32_t expert = outputs.block_expert[block] - problem.shape.first_id;
    cells.push_back(cell(terminal, colour_of_expert(expert), name, static_cast<int>(name.size()), place));
  }
  const int32_t pads = size - rows;
  if (int64_t{size} * (place + 1) <= room) {
    cells.insert(cells.end(), pads, cell(terminal, kFaint, kPad, 1, place));
  } else if (pads > 0) {
    const std::string number = fmt::format(" x {}", pads);
    cells.push_back(cell(terminal, kFaint, kPad + number, 1 + static_cast<int>(number.size())));
  }
  return cells;
}

// "3" or, with a map, "3 (global 17)".
std::string expert_name(const harness::AlignProblem& problem, int32_t expert) {
  if (problem.expert_map.empty()) return fmt::format("{}", expert);
  std::vector<size_t> global;
  for (size_t id = 0; id < problem.expert_map.size(); ++id) {
    if (problem.expert_map[id] == expert) global.push_back(id);
  }
  return fmt::format("{} (global {})", expert, fmt::join(global, ", "));
}

std::string unused_blocks(const Terminal& terminal, const harness::AlignProblem& problem, int64_t used) {
  const int64_t unused = (problem.capacity + problem.shape.block - 1) / problem.shape.block - used;
  if (unused == 0) return "";
  return terminal.paint(
      kFaint, fmt::format("{:{}}and {} unused {} of expert -1: room for the worst routing\n", "", kMargin,
                          unused, unused == 1 ? "block" : "blocks"));
}

}  // namespace

bool fits_blocks_picture(const harness::AlignProblem& problem) {
  return problem.num_pairs() <= kMostPairsInPicture;
}

std::string blocks_picture(const Terminal& terminal, const harness::AlignProblem& problem,
                           const harness::AlignOutputs& outputs) {
  if (problem.num_pairs() == 0) return "";
  const Cell margin = cell(terminal, {}, " ", 1);
  std::string out = fmt::format("{}  each token and the experts that it chose\n",
                                terminal.paint(fmt::emphasis::bold, "topk_ids"));
  out += fold(terminal, margin, token_cells(terminal, problem), 3);
  out += fmt::format("\n{}  a line a block of {}, one expert each: token.choice, padding {}\n",
                     terminal.paint(fmt::emphasis::bold, "sorted_pair_ids"), problem.shape.block, kPad);

  const int64_t used = outputs.num_padded / problem.shape.block;
  size_t expert_width = 0;
  for (int64_t block = 0; block < used; ++block) {
    expert_width = std::max(expert_width, expert_name(problem, outputs.block_expert[block]).size());
  }
  const size_t block_width = fmt::formatted_size("{}", std::max<int64_t>(used - 1, 0));
  for (int64_t block = 0; block < used; ++block) {
    const int32_t expert = outputs.block_expert[block];
    const std::string number = fmt::format("{:{}}block {:>{}}  ", "", kMargin, block, block_width);
    const std::string name = fmt::format("expert {:<{}} ", expert_name(problem, expert), expert_width);
    const auto colour = colour_of_expert(expert - problem.shape.first_id);
    const Cell head{terminal.paint(kFaint, number) + terminal.paint(colour, name),
                    static_cast<int>(number.size() + name.size()), 0};
    out +=
        fold(terminal, head, slot_cells(terminal, problem, outputs, block, terminal.width - head.width), 1);
  }
  return out + unused_blocks(terminal, problem, used);
}

}  // namespace tokenyard::cli
