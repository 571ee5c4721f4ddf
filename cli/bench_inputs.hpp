// What a case of the benchmark runs on.
#pragma once

#include <string>
#include <vector>

#include "choice.hpp"
#include "harness/gate_problem.hpp"
#include "harness/loads.hpp"
#include "harness/problem.hpp"
#include "harness/training_problem.hpp"

namespace tokenyard::cli {

// How the experts of a case are drawn: by one of the distributions, or to the loads of a real model.
class Routing {
 public:
  explicit Routing(harness::Distribution distribution) : distribution_(distribution) {}
  // A file of bench/harness/loads. Its name without folder and ending is the routing's.
  explicit Routing(const std::string& loads_file);

  const std::string& name() const;
  // The shape with what the routing says about it: a file of loads also holds top_k and experts.
  harness::AlignShape with(harness::AlignShape shape) const;
  harness::AlignProblem draw(const harness::AlignShape& shape) const;

 private:
  harness::Distribution distribution_ = harness::Distribution::kUniform;
  std::string loads_name_;  // "" without
  harness::Loads loads_;
};

// The inputs of the calls in a graph. Few tokens: other ones each. Many: one draw, read from another row on
// by each, which is as good for the time and does not take minutes to draw.
std::vector<harness::AlignProblem> rotated_inputs(const Routing& routing, const harness::AlignShape& shape,
                                                  int64_t count);
std::vector<harness::GateProblem> rotated_inputs(const harness::GateShape& shape, int64_t count);
std::vector<harness::LossProblem> rotated_inputs(const harness::TrainingShape& shape, int64_t count);

}  // namespace tokenyard::cli
