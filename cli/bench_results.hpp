// What every benchmark prints and writes beside its own columns.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "device_option.hpp"

namespace tokenyard::cli {

using Json = nlohmann::ordered_json;

// To three decimals.
double rounded(double value);

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The device of that name; refuses a simulated one.
Device open_benchmarked(const std::string& name);

// Says what is measured where, on standard error.
void announce(const char* operation, const Device& device);

// The file of --json, opened before a measurement, which may take long; "" for none.
class ResultFile {
 public:
  explicit ResultFile(const std::string& name);
  void write(const Device& device, const std::string& command_line, const Json& results);

 private:
  std::string name_;
  std::ofstream file_;
};

}  // namespace tokenyard::cli
