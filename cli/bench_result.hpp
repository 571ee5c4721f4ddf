// A result file of the benchmark, and its rows on the terminal. docs/benchmarking.md says what the fields
// mean.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device_option.hpp"
#include "timing.hpp"

namespace tokenyard::cli {

using Json = nlohmann::ordered_json;

// The device, if its times say something.
Device open_timed_device(const std::string& name);

// The row with its last fields: times, and that it was verified; only what was becomes a row.
Json with_timing(Json row, const Timing& timing);

class ResultFile {
 public:
  // "": none. Opens it before the measurement, which may take long.
  explicit ResultFile(const std::string& path);
  void write(const Device& device, const std::string& command_line, const Json& results);

 private:
  std::string path_;
  std::ofstream file_;
};

// The rows: what a case is, in columns of their own, and its times.
class BenchTable {
 public:
  struct Column {
    const char* name;
    int width;
  };
  explicit BenchTable(std::vector<Column> columns);  // prints the heads

  void print(const std::vector<std::string>& cells, const Json& row) const;

 private:
  std::vector<Column> columns_;
};

// "8 of 256"
std::string k_of_e(const Json& row);

}  // namespace tokenyard::cli
