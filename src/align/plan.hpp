// Which path a problem takes on a device, from the rows of tuning/align.hpp, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
  int32_t blocks;
  int32_t cluster;  // 1 but on the grid path
  int32_t owned;    // everywhere: experts of a block, 2, 4 or 32; 0: a warp for each pair, in registers
  int32_t chunk;    // grid and split: pairs of a block
  enum class Why { kAsked, kRow, kNotCooperative, kTooManyPairs } why;
  int64_t row_pairs;  // kRow: up to how many pairs the row goes
};

Plan plan(const DeviceProperties& device, std::span<const tuning::AlignRow> rows, const Problem& problem);

// The plan in words: which path, why, and what it launches.
std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem);

bool has_optional_outputs(const Problem& problem);

// The rows that fit a device.
std::span<const tuning::AlignRow> rows_for(const DeviceProperties& device);

// The grid path with fewer blocks than planned, for a device that can hold only so many: 0 < blocks.
Plan with_blocks(const Plan& plan, const Problem& problem, int32_t blocks);
Plan split_plan(const Problem& problem);

// Workspace bytes of a plan: enough for the split plan too, should the grid path be refused, and for every
// problem with fewer pairs.
size_t workspace_bytes(const Plan& plan, std::span<const tuning::AlignRow> rows, const Problem& problem);

}  // namespace tokenyard::align
