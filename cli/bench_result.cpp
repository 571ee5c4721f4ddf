#include "bench_result.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "environment.hpp"
#include "failure.hpp"

namespace tokenyard::cli {
namespace {

double rounded(double value) { return std::round(1000 * value) / 1000; }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> rounded(const std::optional<double>& value) {
  return value ? std::optional(rounded(*value)) : value;
}

Json to_context(const Device& device, const std::string& command_line) {
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

Failure cannot_write(const std::string& path) {
  return Failure(fmt::format("--json: cannot write {}", path));
}

}  // namespace

Device open_timed_device(const std::string& name) {
  Device device = open_device(name);
  if (!device.is_simulated()) return device;
  throw wrong_usage(fmt::format("--device is {}, expected a GPU or the CPU: a simulation's times say nothing",
                                device.backend->name));
}

Json with_timing(Json row, const Timing& timing) {
  row["floor_us"] = or_null(rounded(timing.floor_us));
  row["us_p20"] = rounded(timing.us.p20);
  row["us_p50"] = rounded(timing.us.p50);
  row["us_p80"] = rounded(timing.us.p80);
  row["host_ns"] = std::round(timing.host_ns);
  row["verified"] = true;
  return row;
}

ResultFile::ResultFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_.open(path);
  if (!file_) throw cannot_write(path);
}

void ResultFile::write(const Device& device, const std::string& command_line, const Json& results) {
  if (path_.empty()) return;
  file_ << Json{{"context", to_context(device, command_line)}, {"results", results}}.dump(2) << "\n";
  if (!file_.flush()) throw cannot_write(path_);
}

BenchTable::BenchTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const auto& [name, width] : columns_) fmt::print("{:>{}} ", name, width);
  fmt::print("{:>8} {:>8} {:>8} {:>6} {:>8}\n", "p20 µs", "p50 µs", "p80 µs", "floor", "host ns");
}

void BenchTable::print(const std::vector<std::string>& cells, const Json& row) const {
  for (size_t i = 0; i < columns_.size(); ++i) fmt::print("{:>{}} ", cells[i], columns_[i].width);
  const std::string floor =
      row["floor_us"].is_null() ? "-" : fmt::format("{:.2f}", row["floor_us"].get<double>());
  fmt::print("{:>8.2f} {:>8.2f} {:>8.2f} {:>6} {:>8.0f}\n", row["us_p20"].get<double>(),
             row["us_p50"].get<double>(), row["us_p80"].get<double>(), floor, row["host_ns"].get<double>());
  std::fflush(stdout);
}

std::string k_of_e(const Json& row) {
  return fmt::format("{} of {}", row["top_k"].get<int>(), row["experts"].get<int>());
}

}  // namespace tokenyard::cli
