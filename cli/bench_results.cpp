#include "bench_results.hpp"

#include <fmt/format.h>

#include <cmath>

#include "environment.hpp"
#include "failure.hpp"
#include "timing.hpp"

namespace tokenyard::cli {
namespace {

Json context(const Device& device, const std::string& command_line) {
  const Environment found = environment(device);
  return {{"device", device.description},
          {"driver", or_null(found.driver)},
          {"sm_clock_mhz", or_null(found.sm_clock_mhz)},
          {"toolkit", found.toolkit},
          {"commit", or_null(found.commit)},
          {"date", found.date},
          {"timer", timer_name(device)},
          {"command", command_line}};
}

}  // namespace

double rounded(double value) { return std::round(1000 * value) / 1000; }

Device open_benchmarked(const std::string& name) {
  Device device = open_device(name);
  if (device.is_simulated()) {
    throw wrong_usage(fmt::format(
        "--device is {}, expected a GPU or the CPU: a simulation's times say nothing", device.backend->name));
  }
  return device;
}

void announce(const char* operation, const Device& device) {
  fmt::print(stderr, "bench {} on {}\n  {}, {} inputs in rotation\n", operation, device.description,
             timer_name(device), kCallsInGraph);
  if (!device.why_not_best.empty()) fmt::print(stderr, "  {}\n", device.why_not_best);
}

ResultFile::ResultFile(const std::string& name) : name_(name) {
  if (name.empty()) return;
  file_.open(name);
  if (!file_) throw Failure(fmt::format("--json: cannot write {}", name));
}

void ResultFile::write(const Device& device, const std::string& command_line, const Json& results) {
  if (name_.empty()) return;
  file_ << Json{{"context", context(device, command_line)}, {"results", results}}.dump(2) << "\n";
  if (!file_.flush()) throw Failure(fmt::format("--json: cannot write {}", name_));
}

}  // namespace tokenyard::cli
