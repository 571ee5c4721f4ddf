// Three calls of align, each of which sorts what the one before it has written: who begins too early, or lets
// the next one, sorts something else.
#pragma once

#include <string>
#include <vector>

#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "runtime/runtime.hpp"

namespace tokenyard::test {

class Chain {
 public:
  Chain(const std::string& device, const harness::AlignProblem& first, const harness::AlignOptions& options);

  void set_ids(const harness::AlignProblem& first);  // other routing of the same shape
  void poison();
  Status launch(Stream stream);

  // After a synchronise: "" if each call has sorted what it should, else how the first that has not differs.
  std::string difference();

  const ty_align_args& first_args() const { return runs_.front().args(); }

 private:
  static constexpr int kCalls = 3;

  std::string device_;
  bool optional_outputs_;
  std::vector<harness::AlignRun> runs_;
  std::vector<harness::AlignOutputs> wanted_;
};

}  // namespace tokenyard::test
