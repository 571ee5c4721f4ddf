// A device whose driver refuses grids that must be resident, as in a context that was given a part of it
// only.
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

namespace {

constexpr int32_t kRefusing = 99;

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

}  // namespace
}  // namespace tokenyard::test
