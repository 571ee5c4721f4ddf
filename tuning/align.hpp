// Tuning of align, as data: how large its kernels are on each family of devices, and which path a number
// of pairs takes. plan() in src/align/plan.cpp reads the rows; nothing else decides.
#pragma once

#include <cstdint>
#include <limits>

#include "tokenyard/tokenyard.h"

namespace tokenyard::tuning {

// Threads of a block and pairs of a thread, per kernel.
struct AlignGeometry {
  int everywhere_threads, everywhere_items;              // small batches
  int everywhere_large_threads, everywhere_large_items;  // the rest of that path
  int grid_threads;
  int grid_items, grid_large_items;  // chunks of one tile; the rest
};

inline constexpr AlignGeometry kNvidiaGeometry{256, 2, 1024, 8, 1024, 2, 8};
inline constexpr AlignGeometry kAmdGeometry{256, 2, 512, 4, 256, 4, 1};
// The executor runs a fiber per thread: small blocks, so that small problems have many tiles and blocks.
inline constexpr AlignGeometry kSimtGeometry{64, 2, 128, 4, 256, 1, 4};

struct AlignRow {
  int64_t max_pairs;  // the row serves problems up to this size
  ty_align_path path;
  int32_t blocks;   // everywhere: at most this many; grid: this many, or what the device can hold
  int32_t cluster;  // blocks in a cluster
};

inline constexpr int64_t kAnyPairs = std::numeric_limits<int64_t>::max();

// Devices with clusters. Measured on an H200: bench/results/.
inline constexpr AlignRow kHopperRows[] = {
    {8192, TY_ALIGN_EVERYWHERE, 128, 1}, {16384, TY_ALIGN_GRID, 16, 1},      {32768, TY_ALIGN_GRID, 32, 4},
    {131072, TY_ALIGN_GRID, 64, 8},      {kAnyPairs, TY_ALIGN_GRID, 120, 8},
};

// Devices without clusters: by count, not measured. Fewer blocks than Hopper's, as each polls every other.
inline constexpr AlignRow kNvidiaRows[] = {
    {8192, TY_ALIGN_EVERYWHERE, 128, 1},
    {16384, TY_ALIGN_GRID, 16, 1},
    {65536, TY_ALIGN_GRID, 32, 1},
    {kAnyPairs, TY_ALIGN_GRID, 64, 1},
};

// AMD: by count, not measured. Multiples of the 8 dies of an MI300X; a wait crosses them, so few blocks.
inline constexpr AlignRow kAmdRows[] = {
    {8192, TY_ALIGN_EVERYWHERE, 128, 1},
    {32768, TY_ALIGN_GRID, 32, 1},
    {kAnyPairs, TY_ALIGN_GRID, 128, 1},
};

// The executor: every kind of row at sizes that it can run in a moment.
inline constexpr AlignRow kSimtRows[] = {
    {512, TY_ALIGN_EVERYWHERE, 16, 1},
    {1024, TY_ALIGN_GRID, 4, 1},
    {2048, TY_ALIGN_GRID, 8, 4},
    {kAnyPairs, TY_ALIGN_GRID, 16, 8},
};

}  // namespace tokenyard::tuning
