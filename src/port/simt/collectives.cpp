#include <algorithm>
#include <bit>

#include "port/simt/grid.hpp"
#include "port/simt/sanitizer.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {

uint64_t Grid::collective(Collective kind, uint64_t value, int argument, const Site& site) {
  step(false);
  Lane& lane = *current_;
  Warp& warp = *lane.warp;
  const bool takes_lane =
      kind == Collective::kShfl || kind == Collective::kShflUp || kind == Collective::kShflXor;
  if (takes_lane && (argument < 0 || argument >= launch_.warp_size)) {
    fail(text(name(kind), "() with ", argument, "; expected 0 to ", launch_.warp_size - 1), site);
  }
  if (warp.at_part != 0) {
    fail(text("divergent: ", name(kind), "(), while other lanes of the warp wait in sync_warps()"), site);
  }
  if (warp.at_barrier != 0) {
    fail(text("divergent: ", name(kind), "(), while other lanes of the warp wait in ", name(warp.block->kind),
              "() at ", place(warp.block->site)),
         site);
  }
  if (warp.met != 0 && (kind != warp.kind || !same(site, warp.site))) {
    fail(text("divergent: ", name(kind), "(), while lane ", std::countr_zero(warp.met),
              " of the warp waits in ", name(warp.kind), "() at ", place(warp.site),
              "; all lanes must take part in the same"),
         site);
  }
  if (kind == Collective::kShfl && (warp.left >> argument & 1) != 0) {
    fail(text("shfl() from lane ", argument, ", which has left the kernel"), site);
  }
  if (warp.left != 0) {
    fail(text(name(kind), "() without lane ", std::countr_zero(warp.left),
              ", which has left the kernel; all lanes of the warp must take part"),
         site);
  }

  warp.kind = kind;
  warp.site = site;
  lane.value = value;
  lane.argument = argument;
  warp.met |= lane.bit();
  // As on hardware, only sync_warp orders memory: a shuffle or a vote exchanges registers.
  void* order = kind == Collective::kSyncWarp ? warp.order.now() : nullptr;
  if (order != nullptr) release(order);
  if (warp.met == all_lanes()) {
    complete(warp);
    warp.met = 0;
    if (order != nullptr) warp.order.turn();
    make_ready(warp, all_lanes());
  }
  suspend(name(kind), site);
  if (order != nullptr) acquire(order);
  return lane.value;
}

// Gives every lane its result.
void Grid::complete(Warp& warp) {
  const int width = launch_.warp_size;
  uint64_t brought[64];
  for (int i = 0; i < width; ++i) brought[i] = warp.lanes[i].value;
  const auto give = [&](auto result) {
    for (int i = 0; i < width; ++i) warp.lanes[i].value = result(i);
  };
  switch (warp.kind) {
    case Collective::kSyncWarp:
      break;
    case Collective::kShfl:
      give([&](int i) { return brought[warp.lanes[i].argument]; });
      break;
    case Collective::kShflUp:
      give([&](int i) { return brought[i < warp.lanes[i].argument ? i : i - warp.lanes[i].argument]; });
      break;
    case Collective::kShflXor:
      give([&](int i) { return brought[i ^ warp.lanes[i].argument]; });
      break;
    case Collective::kBallot:
    case Collective::kAny: {
      uint64_t votes = 0;
      for (int i = 0; i < width; ++i) votes |= (brought[i] & 1) << i;
      const uint64_t result = warp.kind == Collective::kAny ? votes != 0 : votes;
      give([&](int) { return result; });
      break;
    }
    case Collective::kMatch: {
      for (uint64_t rest = all_lanes(); rest != 0;) {
        const uint64_t value = brought[std::countr_zero(rest)];
        uint64_t equal = 0;
        for (int i = 0; i < width; ++i) equal |= uint64_t{brought[i] == value} << i;
        for (int i = 0; i < width; ++i) {
          if ((equal >> i & 1) != 0) warp.lanes[i].value = equal;
        }
        rest &= ~equal;
      }
      break;
    }
    case Collective::kReduceAdd: {
      uint32_t sum = 0;
      for (int i = 0; i < width; ++i) sum += static_cast<uint32_t>(brought[i]);
      give([&](int) { return uint64_t{sum}; });
      break;
    }
    case Collective::kReduceMax: {
      int32_t highest = INT32_MIN;
      for (int i = 0; i < width; ++i) highest = std::max(highest, static_cast<int32_t>(brought[i]));
      give([&](int) { return uint64_t{static_cast<uint32_t>(highest)}; });
      break;
    }
  }
}

}  // namespace tokenyard::port::simt
