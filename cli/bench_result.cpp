#include "bench_result.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <optional>

#include "environment.hpp"

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

}  // namespace

// Only what was verified becomes a row.
Json to_row(const Measured& measured) {
  const harness::AlignShape& shape = measured.shape;
  return {{"op", "align"},
          {"impl", measured.implementation.name},
          {"path", measured.path.empty() ? Json(nullptr) : Json(measured.path)},
          {"tokens", shape.tokens},
          {"top_k", shape.top_k},
          {"experts", shape.experts},
          {"block", shape.block},
          {"dtype", shape.int64_ids ? "int64" : "int32"},
          {"distribution", measured.routing},
          {"order", measured.implementation.stable ? "stable" : "any"},
          {"padding_written", true},
          {"cold", measured.caches == Caches::kCold},
          {"floor_us", or_null(rounded(measured.timing.floor_us))},
          {"us_p20", rounded(measured.timing.us.p20)},
          {"us_p50", rounded(measured.timing.us.p50)},
          {"us_p80", rounded(measured.timing.us.p80)},
          {"host_ns", std::round(measured.timing.host_ns)},
          {"verified", true}};
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

void print_header() {
  fmt::print("{:>7} {:>9} {:>5} {:>17} {:>11} {:>8} {:>8} {:>8} {:>6} {:>8}\n", "tokens", "K of E", "block",
             "ids", "path", "p20 µs", "p50 µs", "p80 µs", "floor", "host ns");
}

void print_row(const Json& row) {
  const std::string floor =
      row["floor_us"].is_null() ? "-" : fmt::format("{:.2f}", row["floor_us"].get<double>());
  const Json& way = row["path"].is_null() ? row["impl"] : row["path"];
  fmt::print("{:>7} {:>9} {:>5} {:>17} {:>11} {:>8.2f} {:>8.2f} {:>8.2f} {:>6} {:>8.0f}\n",
             row["tokens"].get<int64_t>(),
             fmt::format("{} of {}", row["top_k"].get<int>(), row["experts"].get<int>()),
             row["block"].get<int>(), row["distribution"].get<std::string>(), way.get<std::string>(),
             row["us_p20"].get<double>(), row["us_p50"].get<double>(), row["us_p80"].get<double>(), floor,
             row["host_ns"].get<double>());
  std::fflush(stdout);
}

}  // namespace tokenyard::cli
