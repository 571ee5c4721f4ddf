#include "environment.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>

namespace tokenyard::cli {
namespace {

// The first line that a command prints, or nothing if it fails or is not there.
std::optional<std::string> first_line(const std::string& command) {
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) line += static_cast<char>(c);
  if (pclose(pipe) != 0 || line.empty()) return {};
  return line;
}

std::optional<std::string> ask_driver(const Device& device, const char* question) {
  if (device.id.backend != TY_CUDA) return {};
  return first_line(fmt::format("nvidia-smi --query-gpu={} --format=csv,noheader,nounits -i {}", question,
                                device.id.ordinal));
}

}  // namespace

Environment environment(const Device& device) {
  Environment found;
  found.driver = ask_driver(device, "driver_version");
  if (const auto clock = ask_driver(device, "clocks.sm")) found.sm_clock_mhz = std::atoi(clock->c_str());
  const std::string commit = TOKENYARD_COMMIT;
  if (!commit.empty()) found.commit = commit;
  found.toolkit = TOKENYARD_TOOLKIT;
  found.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return found;
}

}  // namespace tokenyard::cli
