// Threads that do not meet where they should: each kernel is wrong in one way, its twin is right.
#include <type_traits>

#include "kernel.hpp"

namespace tokenyard::tests {
namespace {

TEST(Collective, FromALaneThatLeft) {
  const auto read_last_lane = [](bool right) {
    return kernel([right](auto& gpu) {
      const int last = gpu.warp_size - 1;
      if (!right && gpu.lane() == last) return;
      gpu.shfl(gpu.lane(), last);
    });
  };
  expect_clean(read_last_lane(true), 2);
  expect_found(read_last_lane(false), 2, "left the kernel");
}

TEST(Collective, FromALaneThatIsNot) {
  const auto shuffle = [](int beyond) {
    return kernel([beyond](auto& gpu) { gpu.shfl(1, gpu.warp_size - 1 + beyond); });
  };
  expect_clean(shuffle(0), 1);
  expect_found(shuffle(1), 1, "shfl() with");
  const auto shuffle_up = kernel([](auto& gpu) { gpu.shfl_up(1, -1); });
  expect_found(shuffle_up, 1, "shfl_up() with -1; expected 0 to");
}

TEST(Collective, OfOtherKinds) {
  const auto vote = [](bool right) {
    return kernel([right](auto& gpu) {
      if (right || gpu.lane() % 2 == 0) {
        gpu.ballot(true);
      } else {
        gpu.any(true);
      }
    });
  };
  expect_clean(vote(true), 1);
  expect_found(vote(false), 1, "divergent: ");
}

TEST(Collective, AtOtherPlaces) {
  const auto vote = [](bool by_warp) {
    return kernel([by_warp](auto& gpu) {
      const bool even = (by_warp ? gpu.warp() : gpu.lane()) % 2 == 0;
      if (even) gpu.ballot(true);
      if (!even) gpu.ballot(true);
    });
  };
  expect_clean(vote(true), 1);
  expect_found(vote(false), 1, "divergent: ballot(), while lane");
}

TEST(Collective, WhileOthersAreInABarrier) {
  const auto first_lane_votes = kernel([](auto& gpu) {
    if (gpu.lane() == 0) {
      gpu.any(true);
    } else {
      gpu.sync_block();
    }
  });
  expect_found(first_lane_votes, 1, "divergent: ");
}

TEST(Barrier, AtOtherPlaces) {
  const auto meet = [](bool right) {
    return kernel([right](auto& gpu) {
      const bool first = right || gpu.warp() == 0;
      if (first) gpu.sync_block();
      if (!first) gpu.sync_block();
    });
  };
  expect_clean(meet(true), 2);
  expect_found(meet(false), 2, "divergent: sync_block(), while");
}

TEST(Barrier, WithoutAThreadThatLeft) {
  const auto meet = [](bool right) {
    return kernel([right](auto& gpu) {
      if (!right && gpu.thread() == 5) return;
      gpu.sync_block();
    });
  };
  expect_clean(meet(true), 2);
  expect_found(meet(false), 2, "left the kernel");
}

TEST(Barrier, OfAnotherPartOfTheBlock) {
  const auto meet = [](bool right) {
    return kernel([right](auto& gpu) {
      using Gpu = std::remove_reference_t<decltype(gpu)>;
      constexpr int kWarps = kThreads / Gpu::warp_size;
      if (gpu.warp() == 0 || !right) {
        gpu.template sync_warps<0, 1, kWarps>();
      } else {
        gpu.template sync_warps<1, kWarps - 1, kWarps>();
      }
    });
  };
  expect_clean(meet(true), 2);
  expect_found(meet(false), 2, "sync_warps() of 1 warps from 0 by warp ");
}

TEST(Barrier, OfAClusterOfAnotherSize) {
  const auto meet = kernel<2>([](auto& gpu) { gpu.template sync_cluster<4>(); });
  expect_found(meet, 4, "clusters of 4 blocks; the kernel has clusters of 2");
}

TEST(Barrier, OfAClusterInHalves) {
  const auto halves = [](int leaves, int waits) {
    return kernel<2>([leaves, waits](auto& gpu) {
      for (int i = 0; i < leaves; ++i) gpu.template arrive_cluster<2>();
      for (int i = 0; i < waits; ++i) gpu.template wait_cluster<2>();
    });
  };
  expect_clean(halves(1, 1), 4);
  expect_found(halves(2, 1), 4, "arrive_cluster() after arrive_cluster()");
  expect_found(halves(0, 1), 4, "wait_cluster() without an arrive_cluster()");
  expect_found(halves(1, 0), 4, "left the kernel");
}

TEST(Barrier, OfAGridThatNeedNotBeResident) {
  const auto body = [](auto& gpu) { gpu.sync_grid(); };
  expect_clean(cooperative_kernel(body), 4);
  expect_found(kernel(body), 4, "sync_grid() in a kernel that is not cooperative");
}

TEST(Lowest, OfNothing) {
  const auto lowest = [](int mask) { return kernel([mask](auto& gpu) { gpu.lowest(mask); }); };
  expect_clean(lowest(4), 1);
  expect_found(lowest(0), 1, "lowest() of 0");
}

}  // namespace
}  // namespace tokenyard::tests
