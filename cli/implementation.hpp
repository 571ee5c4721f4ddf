// Who does align: this library, or in a CUDA build one of the designs of bench/baselines or of the launches
// of bench/candidates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device_option.hpp"
#include "runtime/runtime.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::cli {

struct Implementation {
  std::string name;  // "impl" in a result file
  bool stable;       // else an expert's pairs stand in any order
  std::function<Status(const ty_align_args&)> call;
};

// Each brings a workspace for calls of the shape of `args`, prepared on `stream`, where its calls run.
Implementation library(const Device& device, const ty_align_args& args, Stream stream);
std::vector<Implementation> baselines(const Device& device, const ty_align_args& args, Stream stream);
std::vector<Implementation> candidates(const Device& device, const ty_align_args& args, Stream stream);

}  // namespace tokenyard::cli
