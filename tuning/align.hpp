// Tuning of align, as data: which launches are compiled for each family of devices, and in what order they
// are preferred. plan() in src/align/plan.cpp reads it; nothing else decides.
#pragma once

#include <cstdint>
#include <span>

namespace tokenyard::tuning {

struct Block {
  int threads, items;  // pairs of a thread
};

inline constexpr int kMostHeld = 512;  // experts; more are shared out among the blocks of a cluster

// A launch in which every block takes one tile of the pairs. The last `sorters` of a block's threads sort;
// the first ones hold an expert each.
struct Tiles {
  int blocks, cluster;
  int threads, sorters, items;  // pairs of a sorter; a multiple of 4 up to kMostHeld experts
  int experts;  // that it sorts by at most: 256 or 512, no more than threads; or more, in clusters of 8

  constexpr bool wide() const { return experts > kMostHeld; }
  constexpr int tile() const { return sorters * items; }
  constexpr int64_t pairs() const { return int64_t{blocks} * tile(); }
};

// Whether each launch of a list is the first that holds some problem.
constexpr bool each_is_chosen(std::span<const Tiles> list) {
  for (size_t later = 0; later < list.size(); ++later) {
    for (size_t sooner = 0; sooner < later; ++sooner) {
      const bool same_kind = list[sooner].wide() == list[later].wide();
      if (same_kind && list[sooner].experts >= list[later].experts &&
          list[sooner].pairs() >= list[later].pairs()) {
        return false;
      }
    }
  }
  return true;
}

struct AlignKernels {
  std::span<const Block> everywhere;  // the first that holds all pairs runs,
  int64_t everywhere_pairs;           // up to so many pairs
  std::span<const Tiles> tiles;       // beyond: the first that holds all pairs and experts,
  Block grid;                         // or else as many tiles as it takes, in so many blocks
  int grid_blocks, grid_cluster;
  int grid_step;  // of the number of blocks: whole clusters, and as many blocks on each die
};

inline constexpr Block kNvidiaEverywhere[] = {{256, 1}, {512, 1}, {512, 4}, {512, 8}, {1024, 8}};

// Devices with clusters. Measured on an H200: bench/results/h200-align.json.
inline constexpr Tiles kHopperTiles[] = {
    {32, 4, 512, 256, 4, 256},    {64, 8, 512, 256, 4, 256},     {64, 8, 768, 512, 4, 256},
    {120, 8, 896, 640, 4, 256},   {120, 8, 832, 576, 8, 256},    {32, 4, 768, 256, 4, 512},
    {64, 8, 768, 256, 4, 512},    {64, 8, 1024, 512, 4, 512},    {64, 8, 1024, 512, 8, 512},
    {120, 8, 1024, 512, 12, 512}, {120, 8, 1024, 512, 16, 4096},
};
static_assert(each_is_chosen(kHopperTiles));
inline constexpr AlignKernels kHopper{kNvidiaEverywhere, 4096, kHopperTiles, {1024, 8}, 120, 8, 8};

// Devices without clusters: by count, not measured. Fewer blocks than Hopper's, as each polls every other.
inline constexpr Tiles kAmpereTiles[] = {
    {16, 1, 1024, 256, 4, 256}, {32, 1, 1024, 768, 4, 256}, {64, 1, 1024, 768, 8, 256},
    {16, 1, 1024, 256, 4, 512}, {32, 1, 1024, 512, 4, 512}, {64, 1, 1024, 512, 8, 512},
};
static_assert(each_is_chosen(kAmpereTiles));
inline constexpr AlignKernels kAmpere{kNvidiaEverywhere, 4096, kAmpereTiles, {1024, 8}, 64, 1, 1};

// AMD: by count, not measured. An MI300X deals blocks out to its 8 dies in turn, each with a second-level
// cache of its own; a wait crosses them, so few blocks, and as many on each.
inline constexpr int kAmdDies = 8;
inline constexpr Block kAmdEverywhere[] = {{256, 1}, {512, 8}};
inline constexpr Tiles kAmdTiles[] = {{32, 1, 256, 256, 4, 256}, {128, 1, 256, 256, 4, 256}};
static_assert(each_is_chosen(kAmdTiles));
static_assert(kAmdTiles[0].blocks % kAmdDies == 0 && kAmdTiles[1].blocks % kAmdDies == 0);
inline constexpr AlignKernels kAmd{kAmdEverywhere, 4096, kAmdTiles, {256, 1}, 128, 1, kAmdDies};

// The executor: a fiber per thread, so small blocks, and every kind of launch at sizes that it runs in a
// moment.
inline constexpr Block kSimtEverywhere[] = {{64, 1}, {64, 8}, {128, 32}};
inline constexpr Tiles kSimtTiles[] = {
    {4, 4, 384, 128, 4, 256},   {4, 1, 256, 256, 4, 256},  {8, 4, 512, 256, 4, 256},
    {10, 1, 384, 128, 12, 256}, {4, 4, 640, 128, 4, 512},  {4, 1, 512, 512, 4, 512},
    {4, 4, 1024, 512, 8, 512},  {8, 8, 256, 256, 1, 2048}, {8, 8, 512, 256, 3, 2048},
    {16, 8, 256, 256, 4, 2048}, {8, 8, 512, 512, 2, 4096},
};
static_assert(each_is_chosen(kSimtTiles));
inline constexpr AlignKernels kSimt{kSimtEverywhere, 512, kSimtTiles, {256, 4}, 16, 8, 8};

}  // namespace tokenyard::tuning
