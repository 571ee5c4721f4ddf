// How a token's experts lie in the registers of its lanes.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gate/selection.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// kEight: eight groups that fill the lanes. kAny: each on a power of two of lanes.
enum class Grouping { kNone, kEight, kAny };

template <class LogitType, int kLanesOfToken, int kItemsOfLane, Selection kSelectedBy, Grouping kGroupedBy>
struct RowShape {
  using Logit = LogitType;
  static constexpr int kLanes = kLanesOfToken;  // that share a token
  static constexpr int kItems = kItemsOfLane;   // experts of each
  static constexpr Selection kSelection = kSelectedBy;
  static constexpr Grouping kGrouping = kGroupedBy;
  static constexpr bool kBiased = kSelection != Selection::kLogit;
  static constexpr bool kGrouped = kGrouping != Grouping::kNone;
  static constexpr bool kIsFull = kGrouping == Grouping::kEight;  // no lane without experts

  // Wide: latency counts, a lane has few experts, and rows may lie anywhere. Narrow: throughput counts.
  static constexpr bool kWide = kLanes >= 32;
  static constexpr int kMaxK = kWide ? 32 : kLanes;

  // Neighbours, loaded at once. Without groups, neighbouring lanes have neighbouring chunks. With them a
  // group's experts lie in as few lanes as they can; each lane begins with another chunk, so that together
  // they read from all banks of the cache.
  static constexpr int kChunk = port::min_of(kItems, static_cast<int>(16 / sizeof(Logit)));
  static constexpr int kChunks = kItems / kChunk;
  static constexpr int kLanesOfLine = 128 / sizeof(Logit) > kItems
                                          ? static_cast<int>(128 / sizeof(Logit)) / kItems
                                          : 1;

  static TY_DEVICE int first_of_chunk(int lane, int chunk) {
    if (!kGrouped) return (chunk * kLanes + lane) * kChunk;
    return lane * kItems + (chunk + lane / kLanesOfLine) % kChunks * kChunk;
  }
  static TY_DEVICE int expert_of(int lane, int item) {
    return first_of_chunk(lane, item / kChunk) + item % kChunk;
  }

  // Parts of a lane, whose highest values make bounds: of all lanes together at least kMaxK.
  static constexpr int kParts = kWide ? 1 : 4;
  static constexpr int kPart = kItems / kParts;

  // What survivors are ranked by: the value, and the expert so that the lower one is above. bfloat16 logits
  // leave room for both in one word. An expert has 16 bits.
  static constexpr bool kShortKeys = !kBiased && std::is_same_v<Logit, port::bfloat16>;
  using Key = std::conditional_t<kShortKeys, int32_t, int64_t>;
  static constexpr Key kNobody = static_cast<Key>(kShortKeys ? INT32_MIN : INT64_MIN);
  static constexpr int kPackKeys = port::Pack<Key>::kItems;
  static constexpr int kStep = 8;  // keys, in the counting of ranks

  // kMaxK - 1 parts may hold nothing but values above the bound that the parts make, and kMaxK of its equals
  // are kept. In slots of their own, and a step more.
  static constexpr int kMaxSurvivors = port::min_of((kMaxK - 1) * kPart + kMaxK, kLanes* kItems);
  static constexpr int kSlots = (kMaxSurvivors + 2 * kStep) / kStep * kStep;

  static TY_DEVICE Key key_of(float value, int32_t expert) {
    const float canonical = kBiased ? value : value + 0.0f;  // -0 equals 0; scores are never -0
    const auto bits = std::bit_cast<int32_t>(canonical);
    const int32_t ordered = bits ^ (bits >> 31 & INT32_MAX);
    if constexpr (kShortKeys) {
      return (ordered & ~0xffff) | (0xffff - expert);
    } else {
      return static_cast<int64_t>(ordered) << 32 | (0xffff - expert);
    }
  }
  static TY_DEVICE int32_t expert_of_key(Key key) { return 0xffff - static_cast<int32_t>(key & 0xffff); }
  static TY_DEVICE float value_of_key(Key key) {
    if constexpr (kShortKeys) {
      const int32_t ordered = key >> 16;
      return std::bit_cast<float>((ordered ^ (ordered >> 31 & INT16_MAX)) << 16);
    } else {
      const auto ordered = static_cast<int32_t>(key >> 32);
      return std::bit_cast<float>(ordered ^ (ordered >> 31 & INT32_MAX));
    }
  }
};

}  // namespace tokenyard::gate
