// What a result file says about the machine and the build.
#pragma once

#include <optional>
#include <string>

#include "device_option.hpp"

namespace tokenyard::cli {

struct Environment {
  std::optional<std::string> driver;
  std::optional<int> sm_clock_mhz;    // now: ask while the card is still warm from the measurement
  std::optional<std::string> commit;  // of the sources, with "-dirty" where they differ from it
  std::string toolkit;
  std::string date;  // UTC, ISO 8601
};

Environment environment(const Device& device);

}  // namespace tokenyard::cli
