// A device whose driver refuses grids that must be resident, as in a context that was given a part of it
// only, and one with too little room for them.
#include <gtest/gtest.h>

#include <string>

#include "align/launch.hpp"
#include "device.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "port/host.hpp"
#include "port/host_runtime.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {

inline constexpr tuning::Block kSmallBlocks[] = {{64, 1}};
inline constexpr tuning::Tiles kSmallTiles[] = {{4, 1, 256, 256, 4, 256}};
inline constexpr tuning::AlignKernels kSmall{kSmallBlocks, 64, kSmallTiles, {256, 4}, 4, 1, 1};

struct RefusingPort : port::host::Port<32> {
  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, void* stream, bool linked = false) {
    if (Kernel::cooperative) return {TY_DEVICE_ERROR, "too many blocks in a cooperative launch"};
    return port::host::Port<32>::launch(kernel, blocks, stream, linked);
  }
};

// A device with room for so many blocks at once.
struct CrampedPort : port::host::Port<32> {
  static inline int room = 0;
  template <class Kernel>
  static Status resident_blocks(int, int& blocks) {
    blocks = room;
    return {};
  }
};

namespace {

constexpr int32_t kRefusing = 99, kCramped = 98;

void register_refusing_backend() {
  if (find_backend(kRefusing) != nullptr) return;
  add_backend({kRefusing, "refusing", &port::host::runtime<32>(),
               align::Launcher<RefusingPort, kSmall>::operation()});
}

TEST(RefusedGrid, IsSplitInTwoLaunches) {
  register_refusing_backend();
  for (const int64_t tokens : {300, 900}) {  // a tile a block; many
    for (const int32_t experts : {100, 600}) {
      const harness::AlignProblem problem =
          harness::draw({.tokens = tokens, .top_k = 3, .experts = experts, .block = 16});
      harness::AlignRun run = create("refusing", problem, {});
      EXPECT_EQ(harness::difference(launched("refusing", run), harness::expected(problem)), "")
          << tokens << " tokens, " << experts << " experts";
    }
  }
}

TEST(RefusedGrid, IsAnErrorWhereItWasAskedFor) {
  register_refusing_backend();
  const harness::AlignProblem problem =
      harness::draw({.tokens = 300, .top_k = 3, .experts = 100, .block = 16});
  harness::AlignRun run = create("refusing", problem, {.path = TY_ALIGN_GRID});
  require(run.poison());
  const Status status = run.launch(nullptr);
  EXPECT_EQ(status.code(), TY_DEVICE_ERROR);
  EXPECT_NE(status.message().find("cooperative"), std::string::npos) << status.message();
}

// More blocks than there is room for would wait for each other forever; the explanation says what runs.
TEST(CrampedDevice, TakesAsManyTilesABlockAsItTakes) {
  if (find_backend(kCramped) == nullptr) {
    add_backend(
        {kCramped, "cramped", &port::host::runtime<32>(), align::Launcher<CrampedPort, kSmall>::operation()});
  }
  struct Case {
    int room;
    const char *begins, *launches;
  };
  for (const auto& [room, begins, launches] :
       {Case{4, "grid: 2700 pairs of 100 experts", "launch of 4 blocks, 768 pairs each, a tile"},
        Case{2, "grid: ", "has no room for a block for each tile at once: one cooperative launch of 2 "},
        Case{0, "split: ", "has no room for a block for each tile at once: two launches of "}}) {
    CrampedPort::room = room;
    const harness::AlignProblem problem =
        harness::draw({.tokens = 900, .top_k = 3, .experts = 100, .block = 16});
    harness::AlignRun run = create("cramped", problem, {});
    EXPECT_EQ(harness::difference(launched("cramped", run), harness::expected(problem)), "") << room;
    char text[512];
    ASSERT_EQ(ty_align_explain({kCramped, 0}, &run.args(), text, sizeof text), TY_OK) << ty_last_error();
    EXPECT_EQ(std::string(text).find(begins), 0U) << text;
    EXPECT_NE(std::string(text).find(launches), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tokenyard::test
