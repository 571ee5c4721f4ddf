// Expert loads of real models, and routings drawn to them: for measurements with real skew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/problem.hpp"

namespace tokenyard::harness {

// One of bench/harness/loads/*.json.
struct Loads {
  std::string model;
  int32_t layer = 0;
  std::string source;  // who recorded the routing
  int64_t tokens = 0;  // recorded, the engine's warm-up left out
  int32_t top_k = 0;
  int32_t experts = 0;
  std::vector<int64_t> counts;  // [experts], tokens that chose each
};

// Throws std::runtime_error with a sentence that names the file and what is wrong with it.
Loads read_loads(const std::string& file);

// `shape` with the file's top_k and experts, and shape.tokens tokens: each names distinct experts, and each
// expert with exactly its recorded frequency.
AlignProblem draw_to_loads(AlignShape shape, const Loads& loads);
AlignProblem draw_to_loads(const AlignShape& shape, const std::string& file);

}  // namespace tokenyard::harness
