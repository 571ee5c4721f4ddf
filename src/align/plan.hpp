// Which launch a problem takes on a device, from the lists of tuning/align.hpp, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "align/contract.hpp"
#include "runtime/runtime.hpp"
#include "tuning/align.hpp"

namespace tokenyard::align {

// The everywhere path's kernel in registers: up to so many pairs, in blocks of so many threads.
inline constexpr int32_t kMaxRegisterPairs = 32;
inline constexpr int32_t kRegisterThreads = 64;

struct Plan {
  ty_align_path path;  // never TY_ALIGN_AUTO
  int32_t blocks = 0;
  int32_t cluster = 1;
  int32_t owned = 0;  // everywhere: experts of a block, 2 or 4 to 32; 0: a warp for each pair, in registers
  int32_t tiles = 0;  // grid: which of the list, from 1; 0: as many tiles as it takes
  int32_t chunk = 0;  // grid and split: pairs of a block
  enum class Why { kAsked, kSize, kNotCooperative, kNotHeld } why = Why::kAsked;
};

Plan plan(const DeviceProperties& device, const tuning::AlignKernels& kernels, const Problem& problem);

// The plan in words: which path, why, and what it launches.
std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem);

bool has_optional_outputs(const Problem& problem);

// A tile a block: `number` of the list, from 1.
Plan tiles_plan(const tuning::Tiles& tiles, int32_t number, const Problem& problem);
// As many tiles as it takes in at most so many blocks; two launches.
Plan grid_plan(const tuning::AlignKernels& kernels, const Problem& problem, int32_t blocks);
Plan split_plan(const Problem& problem);

// Workspace bytes of a plan: enough for the split plan too, should the grid path be refused, and for every
// problem with fewer pairs.
size_t workspace_bytes(const Plan& plan, const tuning::AlignKernels& kernels, const Problem& problem);

}  // namespace tokenyard::align
