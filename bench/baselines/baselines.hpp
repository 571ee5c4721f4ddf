// Other ways to align on CUDA, for `tokenyard bench align --baselines` to measure on the same inputs, in the
// same process and by the same timer as this library. Each is written anew after the design that its file
// names at the top, with every improvement that leaves the design what it is.
//
// All take ids that are valid and contiguous, without a map, and write sorted_pair_ids and block_expert to
// the end of the capacity, and num_padded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::baselines {

struct Baseline {
  std::string name;                     // "impl" in a result file
  bool stable;                          // else an expert's pairs stand in any order
  bool (*takes)(const ty_align_args&);  // whether it offers so many pairs and experts
  size_t (*workspace_bytes)(const ty_align_args&);
  Status (*prepare)(const ty_align_args&, Workspace, Stream);  // once, not timed; nullptr: nothing to do
  Status (*run)(const ty_align_args&, Workspace, Stream);      // enqueues, for the current device
};

Baseline article();
Baseline two_kernel();
Baseline cub_radix();

inline std::vector<Baseline> all() { return {article(), two_kernel(), cub_radix()}; }

}  // namespace tokenyard::baselines
