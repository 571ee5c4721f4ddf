// Tuning of align, as data: how large its kernels are on each family of devices, and which path a number
// of pairs takes. plan() in src/align/plan.cpp reads the rows; nothing else decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tokenyard/tokenyard.h"

namespace tokenyard::tuning {

struct Block {
  int threads, items;  // pairs of a thread
};

// The blocks of each kernel. Of several, the first that holds all pairs (everywhere) or a chunk (tile) runs.
struct AlignGeometry {
  Block everywhere[5];
  size_t everywhere_blocks;
  Block tile[3];
  size_t tile_blocks;
  int tile_experts;  // up to which a tile is sorted in one go: 256 or 512
  Block grid;        // chunks of many tiles
};

inline constexpr AlignGeometry kNvidiaGeometry{{{128, 1}, {512, 1}, {512, 4}, {512, 8}, {1024, 8}},
                                               5,
                                               {{1024, 1}, {1024, 2}, {1024, 8}},
                                               3,
                                               512,
                                               {1024, 8}};
inline constexpr AlignGeometry kAmdGeometry{{{256, 1}, {512, 8}}, 2, {{256, 4}}, 1, 256, {256, 1}};
// The executor runs a fiber per thread: small blocks, so that small problems have many tiles and blocks.
inline constexpr AlignGeometry kSimtGeometry{
    {{64, 1}, {64, 8}, {128, 32}}, 3, {{512, 1}, {512, 4}}, 2, 512, {256, 4}};

struct AlignRow {
  int64_t max_pairs;  // the row serves problems up to this size
  ty_align_path path;
  int32_t blocks;   // grid: this many, or what the device can hold; everywhere: as many as its experts need
  int32_t cluster;  // blocks in a cluster
};

inline constexpr int64_t kAnyPairs = std::numeric_limits<int64_t>::max();

// Devices with clusters. Measured on an H200: bench/results/.
inline constexpr AlignRow kHopperRows[] = {
    {8192, TY_ALIGN_EVERYWHERE, 0, 1}, {16384, TY_ALIGN_GRID, 16, 1},      {32768, TY_ALIGN_GRID, 32, 4},
    {131072, TY_ALIGN_GRID, 64, 8},    {kAnyPairs, TY_ALIGN_GRID, 120, 8},
};

// Devices without clusters: by count, not measured. Fewer blocks than Hopper's, as each polls every other.
inline constexpr AlignRow kNvidiaRows[] = {
    {8192, TY_ALIGN_EVERYWHERE, 0, 1},
    {16384, TY_ALIGN_GRID, 16, 1},
    {65536, TY_ALIGN_GRID, 32, 1},
    {kAnyPairs, TY_ALIGN_GRID, 64, 1},
};

// AMD: by count, not measured. Multiples of the 8 dies of an MI300X; a wait crosses them, so few blocks.
inline constexpr AlignRow kAmdRows[] = {
    {4096, TY_ALIGN_EVERYWHERE, 0, 1},
    {32768, TY_ALIGN_GRID, 32, 1},
    {kAnyPairs, TY_ALIGN_GRID, 128, 1},
};

// The executor: every kind of row at sizes that it can run in a moment.
inline constexpr AlignRow kSimtRows[] = {
    {512, TY_ALIGN_EVERYWHERE, 0, 1},
    {1024, TY_ALIGN_GRID, 4, 1},
    {2048, TY_ALIGN_GRID, 8, 4},
    {kAnyPairs, TY_ALIGN_GRID, 16, 8},
};

}  // namespace tokenyard::tuning
