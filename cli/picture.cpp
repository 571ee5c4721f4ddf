#include "picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

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
  if (id < 0 || id >= problem.shape.experts) return -1;
  if (problem.expert_map.empty()) return static_cast<int32_t>(id);
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
    cells.push_back(cell(terminal, colour_of_expert(outputs.block_expert[block]), name,
                         static_cast<int>(name.size()), place));
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
  const auto at = std::find(problem.expert_map.begin(), problem.expert_map.end(), expert);
  if (at == problem.expert_map.end()) return fmt::format("{}", expert);
  return fmt::format("{} (global {})", expert, at - problem.expert_map.begin());
}

std::string unused_blocks(const Terminal& terminal, const harness::AlignProblem& problem, int64_t used) {
  const int64_t unused = (problem.capacity + problem.shape.block - 1) / problem.shape.block - used;
  if (unused == 0) return "";
  return terminal.paint(
      kFaint, fmt::format("{:{}}and {} unused {} of expert -1: room for the worst routing\n", "", kMargin,
                          unused, unused == 1 ? "block" : "blocks"));
}

// What one column of the loads picture stands for.
struct Column {
  int32_t load;
  fmt::text_style style;
};

// `height` rows of text, top first, that draw columns in eighths of a row.
std::string column_rows(const Terminal& terminal, const std::vector<Column>& columns, int32_t highest,
                        int height, int label_width) {
  static const std::array<std::string, 9> eighths{" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                  "\u2585", "\u2586", "\u2587", "\u2588"};
  std::string out;
  for (int row = height - 1; row >= 0; --row) {
    const std::string label = row == height - 1 ? fmt::format("{}", highest) : "";
    out += fmt::format("{:{}}{} ", "", kMargin,
                       terminal.paint(kFaint, fmt::format("{:>{}}", label, label_width)));
    for (const Column& column : columns) {
      const int64_t eighths_filled =
          (int64_t{8} * height * column.load + highest - 1) / highest;  // one shows
      const int64_t here = std::clamp<int64_t>(eighths_filled - int64_t{8} * row, 0, 8);
      out += here == 0 ? " " : terminal.paint(column.style, eighths[here]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace

bool fits_blocks_picture(const harness::AlignProblem& problem) {
  return problem.num_pairs() <= kMostPairsInPicture;
}

std::string blocks_picture(const Terminal& terminal, const harness::AlignProblem& problem,
                           const harness::AlignOutputs& outputs) {
  if (problem.num_pairs() == 0) return "";
  const Cell margin = cell(terminal, {}, " ", 1);
  std::string out =
      terminal.paint(fmt::emphasis::bold, "topk_ids") + "  each token and the experts that it chose\n";
  out += fold(terminal, margin, token_cells(terminal, problem), 3);
  out += "\n" + terminal.paint(fmt::emphasis::bold, "sorted_pair_ids") +
         fmt::format("  a line a block of {}, one expert each: token.choice, padding {}\n",
                     problem.shape.block, kPad);

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
    const Cell head{terminal.paint(kFaint, number) + terminal.paint(colour_of_expert(expert), name),
                    static_cast<int>(number.size() + name.size()), 0};
    out +=
        fold(terminal, head, slot_cells(terminal, problem, outputs, block, terminal.width - head.width), 1);
  }
  return out + unused_blocks(terminal, problem, used);
}

std::string loads_picture(const Terminal& terminal, std::vector<int32_t> counts, LoadOrder order) {
  if (order == LoadOrder::kByLoad) std::sort(counts.begin(), counts.end(), std::greater<>());
  const int32_t highest = std::max(*std::max_element(counts.begin(), counts.end()), 1);
  const double mean = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0})) /
                      static_cast<double>(counts.size());
  const int label_width = static_cast<int>(fmt::formatted_size("{}", highest));
  const size_t columns_in_row = static_cast<size_t>(terminal.width - kMargin - label_width - 2);

  constexpr size_t kMostRowsOfColumns = 4;
  const size_t experts_in_column =
      (counts.size() + columns_in_row * kMostRowsOfColumns - 1) / (columns_in_row * kMostRowsOfColumns);
  std::vector<Column> columns;
  for (size_t first = 0; first < counts.size(); first += experts_in_column) {
    const size_t last = std::min(first + experts_in_column, counts.size());
    const int32_t load = *std::max_element(counts.begin() + first, counts.begin() + last);
    columns.push_back({load, load > 2 * mean ? fmt::fg(terminal_color::bright_red)
                             : load > mean   ? fmt::fg(terminal_color::bright_yellow)
                                             : fmt::fg(terminal_color::bright_cyan)});
  }

  const char* what = order == LoadOrder::kByLoad ? "highest first" : "by id";
  const std::string scale = experts_in_column == 1
                                ? "a column each"
                                : fmt::format("a column is the highest of {}", experts_in_column);
  std::string out = terminal.paint(fmt::emphasis::bold, "counts") +
                    fmt::format("  pairs of each expert, {}, {}; mean {:.1f}\n", what, scale, mean);
  const size_t rows_of_columns = (columns.size() + columns_in_row - 1) / columns_in_row;
  const int height = rows_of_columns == 1 ? 8 : 4;
  for (size_t first = 0; first < columns.size(); first += columns_in_row) {
    const size_t last = std::min(first + columns_in_row, columns.size());
    out += column_rows(terminal, {columns.begin() + first, columns.begin() + last}, highest, height,
                       label_width);
    const std::string from = fmt::format("{}", first * experts_in_column);
    const std::string to = fmt::format("{}", std::min(last * experts_in_column, counts.size()) - 1);
    const size_t columns_here = last - first;
    const bool both = from != to && from.size() + to.size() + 1 <= columns_here;
    out += fmt::format(
        "{:{}}{}\n", "", kMargin + label_width + 1,
        terminal.paint(kFaint, both ? fmt::format("{}{:>{}}", from, to, columns_here - from.size()) : from));
  }
  return out;
}

}  // namespace tokenyard::cli
