// What a subcommand says about one run: lines of a label and a text beside it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "device_option.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "terminal.hpp"
#include "timing.hpp"

namespace tokenyard::cli {

class Summary {
 public:
  explicit Summary(const Terminal& terminal) : terminal_(terminal) {}

  template <class... Parts>
  void line(const char* label, fmt::format_string<Parts...> format, Parts&&... parts) const {
    put(label, fmt::format(format, std::forward<Parts>(parts)...));
  }

  void device(const Device& device) const;
  void time(const Device& device, const Timing& timing) const;
  // How full the blocks of an order are, and how even the loads.
  void order(const harness::AlignProblem& problem, const harness::AlignOutputs& outputs) const;
  // `wrong` is "" or what is wrong; `right` says what was found.
  void verified(const std::string& wrong, const char* right) const;

 private:
  void put(const char* label, const std::string& text) const;

  const Terminal& terminal_;
};

}  // namespace tokenyard::cli
