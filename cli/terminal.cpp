#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace tokenyard::cli {
namespace {

constexpr int kNarrowest = 40;  // below this no picture can be read

int width_of_output() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int given = columns == nullptr ? 0 : std::atoi(columns);
  return given > 0 ? given : Terminal{}.width;
}

bool shows_progress() {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  return terminal;
}

}  // namespace

Terminal standard_output() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  return {std::max(width_of_output(), kNarrowest), wanted && isatty(STDOUT_FILENO) == 1};
}

std::string fold_words(const Terminal& terminal, const std::string& text, int indent) {
  std::istringstream words(text);
  std::string out;
  int column = indent;
  for (std::string word; words >> word; column += static_cast<int>(word.size())) {
    if (out.empty()) {
      // where the caller stands
    } else if (column + 1 + static_cast<int>(word.size()) > terminal.width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = indent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
  }
  return out;
}

void show_progress(const std::string& line) {
  if (shows_progress()) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
  }
}

void clear_progress() { show_progress(""); }

}  // namespace tokenyard::cli
