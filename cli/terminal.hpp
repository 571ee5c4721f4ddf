// What standard output can show.
#pragma once

#include <fmt/color.h>

#include <string>

namespace tokenyard::cli {

struct Terminal {
  int width = 80;
  bool colour = false;

  // `text` in a style, or plain.
  std::string paint(const fmt::text_style& style, const std::string& text) const {
    return colour ? fmt::format(style, "{}", text) : text;
  }
};

// The width of the terminal, else of COLUMNS, else 80. Colour only on a terminal, and not under NO_COLOR.
Terminal standard_output();

// `text` broken at spaces into lines of the terminal's width, all but the first after `indent` blanks; the
// first begins in column `indent`.
std::string fold_words(const Terminal& terminal, const std::string& text, int indent);

// A line on standard error that is overwritten by the next; nothing where that is not a terminal.
void show_progress(const std::string& line);
void clear_progress();

}  // namespace tokenyard::cli
