#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "picture.hpp"

namespace tokenyard::cli {
namespace {

using fmt::terminal_color;

constexpr int kMargin = 2;
constexpr size_t kMostBands = 6;
constexpr int64_t kEighths = 8;  // steps in which a character cell can be filled

const fmt::text_style kFaint = fmt::emphasis::faint;

// Experts side by side; more than fit on a line make bands one below the other, more than fit in the bands
// share columns.
struct Layout {
  size_t columns_in_band;
  size_t experts_in_column;
  int label_width;
};

Layout layout(const Terminal& terminal, size_t experts, int32_t highest) {
  const int label_width = static_cast<int>(fmt::formatted_size("{}", highest));
  const size_t columns_in_band = static_cast<size_t>(terminal.width - kMargin - label_width - 2);
  const size_t room = columns_in_band * kMostBands;
  return {columns_in_band, (experts + room - 1) / room, label_width};
}

struct Column {
  int32_t load;
  fmt::text_style style;
};

std::vector<Column> columns_of(const std::vector<int32_t>& counts, size_t experts_in_column, double mean) {
  std::vector<Column> columns;
  for (size_t first = 0; first < counts.size(); first += experts_in_column) {
    const size_t last = std::min(first + experts_in_column, counts.size());
    const int32_t load = *std::max_element(counts.begin() + first, counts.begin() + last);
    const terminal_color colour = load > 2 * mean ? terminal_color::bright_red
                                  : load > mean   ? terminal_color::bright_yellow
                                                  : terminal_color::bright_cyan;
    columns.push_back({load, fmt::fg(colour)});
  }
  return columns;
}

// The rows of a band, top first, the highest load beside the first.
std::string band(const Terminal& terminal, const std::vector<Column>& columns, int32_t highest, int height,
                 int label_width) {
  static const std::array<std::string, kEighths + 1> fill{" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                          "\u2585", "\u2586", "\u2587", "\u2588"};
  std::string out;
  for (int row = height - 1; row >= 0; --row) {
    const std::string label = row == height - 1 ? fmt::format("{}", highest) : "";
    out += fmt::format("{:{}}{} ", "", kMargin,
                       terminal.paint(kFaint, fmt::format("{:>{}}", label, label_width)));
    for (const Column& column : columns) {
      // Rounded up, so that a load of one shows.
      const int64_t filled = (kEighths * height * column.load + highest - 1) / highest;
      const int64_t here = std::clamp<int64_t>(filled - kEighths * row, 0, kEighths);
      out += here == 0 ? fill[0] : terminal.paint(column.style, fill[here]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

// The first and the last expert below their columns.
std::string axis(const Terminal& terminal, size_t first, size_t last, size_t columns, int label_width) {
  std::string text = fmt::format("{}", first);
  const size_t room = columns > text.size() ? columns - text.size() : 0;
  const std::string end = fmt::format("{}", last);
  if (first != last && end.size() < room) text += fmt::format("{:>{}}", end, room);
  return fmt::format("{:{}}{}\n", "", kMargin + label_width + 1, terminal.paint(kFaint, text));
}

}  // namespace

std::string loads_picture(const Terminal& terminal, std::vector<int32_t> counts, LoadOrder order) {
  if (order == LoadOrder::kByLoad) std::sort(counts.begin(), counts.end(), std::greater<>());
  const int32_t highest = std::max(*std::max_element(counts.begin(), counts.end()), 1);
  const double sum = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double mean = sum / static_cast<double>(counts.size());
  const Layout sizes = layout(terminal, counts.size(), highest);
  const std::vector<Column> columns = columns_of(counts, sizes.experts_in_column, mean);

  const std::string scale = sizes.experts_in_column == 1
                                ? "a column each"
                                : fmt::format("a column is the highest of {}", sizes.experts_in_column);
  std::string out = fmt::format("{}  pairs of each expert, {}, {}; mean {:.1f}\n",
                                terminal.paint(fmt::emphasis::bold, "counts"),
                                order == LoadOrder::kByLoad ? "highest first" : "by id", scale, mean);
  const int height = columns.size() <= sizes.columns_in_band ? 8 : 4;
  for (size_t first = 0; first < columns.size(); first += sizes.columns_in_band) {
    const size_t last = std::min(first + sizes.columns_in_band, columns.size());
    out +=
        band(terminal, {columns.begin() + first, columns.begin() + last}, highest, height, sizes.label_width);
    const size_t last_expert = std::min(last * sizes.experts_in_column, counts.size()) - 1;
    out += axis(terminal, first * sizes.experts_in_column, last_expert, last - first, sizes.label_width);
  }
  return out;
}

}  // namespace tokenyard::cli
