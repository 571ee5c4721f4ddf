// How a token's experts lie in the registers of its lanes.
#pragma once

#include <cstdint>

#include "gate/row_key.hpp"
#include "gate/selection.hpp"
#include "gate/weights.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// kEight: eight groups that fill the lanes. kAny: each on a power of two of lanes. kMasked: each of a
// multiple of four experts, which lie as without groups.
enum class Grouping { kNone, kEight, kAny, kMasked };

template <class LogitType, int kLanesOfToken, int kItemsOfLane, Selection kSelectedBy, Grouping kGroupedBy,
          Weighting kWeightedBy>
struct RowShape {
  using Logit = LogitType;
  static constexpr int kLanes = kLanesOfToken;  // that share a token
  static constexpr int kItems = kItemsOfLane;   // experts of each
  static constexpr Selection kSelection = kSelectedBy;
  static constexpr Grouping kGrouping = kGroupedBy;
  static constexpr Weighting kWeighting = kWeightedBy;
  static constexpr bool kBiased = kSelection != Selection::kLogit;
  static constexpr bool kMasked = kGrouping == Grouping::kMasked;
  static constexpr bool kGrouped = kGrouping == Grouping::kEight || kGrouping == Grouping::kAny;  // in lanes
  static constexpr bool kIsFull = kGrouping == Grouping::kEight;  // no lane without experts

  // Wide: latency counts, and a lane has few experts. Narrow: eight lanes or sixteen, throughput counts.
  static constexpr bool kWide = kLanes >= 32;
  static_assert(kWide || ((kLanes == 8 || kLanes == 16) && kItems >= 8));
  static constexpr int kMaxK = kWide ? 32 : kLanes;

  // Neighbours, loaded at once. Without groups, neighbouring lanes have neighbouring chunks. With them a
  // group's experts lie in as few lanes as they can; each lane begins with another chunk, so that together
  // they read from all banks of the cache.
  static constexpr int kChunk = port::min_of(kItems, kMasked ? 4 : static_cast<int>(16 / sizeof(Logit)));
  static constexpr int kChunks = kItems / kChunk;
  static constexpr int kLanesOfLine = 128 / sizeof(Logit) > kItems
                                          ? static_cast<int>(128 / sizeof(Logit)) / kItems
                                          : 1;

  static TY_DEVICE int first_of_chunk(int lane, int chunk) { return expert_of(lane, chunk * kChunk); }
  static TY_DEVICE int expert_of(int lane, int item) {
    const auto i = static_cast<unsigned>(item);
    const auto l = static_cast<unsigned>(lane);
    if constexpr (kGrouped) {
      return static_cast<int>(l * kItems + (i + l / kLanesOfLine * kChunk) % kItems);
    } else {
      return static_cast<int>(i + l * kChunk + i / kChunk * (kLanes - 1) * kChunk);
    }
  }

  // With groups: a mask of items as one of experts, from the lane's first on.
  static TY_DEVICE uint32_t in_order_of_ids(int lane, uint32_t items) {
    const unsigned turn = static_cast<unsigned>(lane) / kLanesOfLine * kChunk % kItems;
    const uint64_t twice = static_cast<uint64_t>(items) << kItems | items;
    return static_cast<uint32_t>(twice >> (kItems - turn) & ((uint64_t{1} << kItems) - 1));
  }

  // Many items: a mask tells which survive, else each is put somewhere.
  static constexpr bool kByMask = kItems > 8;

  // Parts of a lane, whose highest values make bounds: of all lanes together at least kMaxK.
  static constexpr int kParts = kWide ? 1 : 4;
  static constexpr int kPart = kItems / kParts;

  // How survivors are ranked: lanes count the keys above their own, or sort them among each other.
  static constexpr bool kByCount = kLanes >= 16;

  // What survivors are ranked by.
  using Keys = RowKey<Logit, kBiased>;
  using Short = ShortKeys<kLanes * kItems>;
  static constexpr int kStep = 8;  // keys, in the counting of ranks

  // kMaxK - 1 parts may hold nothing but values above the bound that the parts make. By mask, there is room
  // for these; else for all. In slots of their own, a step more, and one for each lane to put what does not
  // survive.
  static constexpr int kAll = kLanes * kItems;
  static constexpr int kMaxSurvivors = kByMask ? port::min_of((kMaxK - 1) * kPart, kAll) : kAll;
  static constexpr int kUnused = (kMaxSurvivors + 2 * kStep) / kStep * kStep;
  static constexpr int kSlots = kUnused + (kByMask ? 0 : kLanes);
};

}  // namespace tokenyard::gate
