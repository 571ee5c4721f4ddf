// Launches that would never end: each kernel is wrong in one way, its twin is right.
#include <vector>

#include "kernel.hpp"

namespace tokenyard::tests {
namespace {

// Runs `make(right, flags)` with fresh flags on every schedule, as the kernels change them.
template <class Make>
void expect_found_in_twin(Make make, int blocks, const std::string& what, uint64_t seeds = kSeeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::vector<int32_t> flags(static_cast<size_t>(blocks));
    const Status good = run<32>(make(true, flags.data()), blocks, seed);
    EXPECT_TRUE(good.ok()) << good.message();
    flags.assign(flags.size(), 0);
    const Status bad = run<32>(make(false, flags.data()), blocks, seed);
    EXPECT_EQ(bad.code(), TY_DEVICE_ERROR) << what;
    EXPECT_NE(bad.message().find(what), std::string::npos) << bad.message();
  }
}

TEST(Deadlock, OfTwoBarriers) {
  const auto meet = [](bool right) {
    return kernel<2, true>([right](auto& gpu) {
      if (right || gpu.template cluster_rank<2>() == 0) {
        gpu.template sync_cluster<2>();
        gpu.sync_grid();
      } else {
        gpu.sync_grid();
        gpu.template sync_cluster<2>();
      }
    });
  };
  expect_clean(meet(true), 4);
  expect_found(meet(false), 4, "deadlock; ");
}

TEST(Deadlock, OfAPollThatNobodyAnswers) {
  const auto poll = [](bool right, int32_t* flags) {
    return cooperative_kernel([right, flags](auto& gpu) {
      if (gpu.block() == 0) {
        if (right && gpu.thread() == 0) gpu.store_release(flags, 1);
      } else {
        while (gpu.load_acquire(flags) == 0) gpu.pause();
      }
    });
  };
  expect_found_in_twin(poll, 4, "deadlock; 384 threads in pause()");
}

TEST(Deadlock, OfAPollBehindABarrier) {
  // Block 0 waits in the grid's barrier for blocks that wait for its word.
  const auto poll = [](bool right, int32_t* flags) {
    return cooperative_kernel([right, flags](auto& gpu) {
      const bool speaks = gpu.block() == 0 && gpu.thread() == 0;
      if (right && speaks) gpu.store_release(flags, 1);
      if (gpu.block() != 0 && gpu.thread() == 0) {
        while (gpu.load_acquire(flags) == 0) gpu.pause();
      }
      gpu.sync_grid();
      if (!right && speaks) gpu.store_release(flags, 1);
    });
  };
  expect_found_in_twin(poll, 4, "deadlock; 3 threads in pause()");
}

TEST(Deadlock, OfAPollThatKeepsWriting) {
  // A warp that polls together votes each time and notes what it saw: nothing of that is progress.
  const auto poll = [](bool right, int32_t* flags) {
    return cooperative_kernel([right, flags](auto& gpu) {
      auto& values = shared_values(gpu);
      if (right) gpu.store_release(flags + gpu.block(), 1);
      for (;;) {
        const int32_t seen = gpu.load_acquire(flags + (gpu.block() + 1) % gpu.blocks());
        values(gpu.thread()) = seen;
        if (gpu.any(seen != 0)) break;
        gpu.pause();
      }
    });
  };
  expect_found_in_twin(poll, 2, "deadlock; ");
}

TEST(Deadlock, OfALoopThatDoesNotPause) {
  const auto poll = [](bool right, int32_t* flags) {
    return cooperative_kernel([right, flags](auto& gpu) {
      if (gpu.thread() != 0) return;
      if (right || gpu.block() == 0) gpu.store_release(flags + gpu.block(), 1);
      while (gpu.load_acquire(flags + (gpu.block() + 1) % gpu.blocks()) == 0) {
      }
    });
  };
  expect_found_in_twin(poll, 2, "deadlock: a loop reads memory that nobody changes", 4);
}

TEST(Deadlock, OfBlocksThatNeedNotBeResident) {
  const auto wait_for_all = [](bool resident, int32_t* flags) {
    const auto body = [flags](auto& gpu) {
      if (gpu.thread() != 0) return;
      gpu.store_release(flags + gpu.block(), 1);
      for (int i = 0; i < gpu.blocks(); ++i) {
        while (gpu.load_acquire(flags + i) == 0) gpu.pause();
      }
    };
    constexpr int kBlocks = 32;
    return resident ? run<64>(cooperative_kernel(body), kBlocks, 1) : run<64>(kernel(body), kBlocks, 1);
  };
  std::vector<int32_t> flags(32);
  EXPECT_TRUE(wait_for_all(true, flags.data()).ok());
  flags.assign(flags.size(), 0);
  const Status status = wait_for_all(false, flags.data());
  EXPECT_NE(status.message().find("28 blocks have not started"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace tokenyard::tests
