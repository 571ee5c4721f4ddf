// What ThreadSanitizer makes of a missing barrier: each kernel lacks one thing, its twin has it. Built with
// -fsanitize=thread only, and in a program of its own, because the races that it asks for are printed.
#include <type_traits>
#include <vector>

#include "kernel.hpp"

namespace {

int reports = 0;

}  // namespace

// ThreadSanitizer calls these. The first runs in the thread of the race, and must not be looked at itself.
// Of many reports about the same two places in the code only one comes.
extern "C" {
__attribute__((visibility("default"), no_sanitize("thread"))) void __tsan_on_report(const void*) {
  ++reports;
}
__attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "exitcode=0:suppress_equal_addresses=0";
}
}

namespace tokenyard::tests {
namespace {

// `make(right, memory)` gives the kernel or its twin; memory is [blocks * kThreads], all zero.
template <class Make>
void expect_race_without(Make make, int blocks) {
  const auto races = [&](bool right) {
    const int before = reports;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      std::vector<int32_t> memory(static_cast<size_t>(blocks * kThreads));
      const Status status = run<32>(make(right, memory.data()), blocks, seed);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return reports - before;
  };
  EXPECT_EQ(races(true), 0);
  EXPECT_GT(races(false), 0);
}

TEST(Race, WithoutSyncBlock) {
  const auto reverse = [](bool right, int32_t* out) {
    return kernel([right, out](auto& gpu) {
      auto& values = shared_values(gpu);
      values(gpu.thread()) = 0;
      gpu.sync_block();
      values(gpu.thread()) = gpu.thread();
      if (right) gpu.sync_block();
      out[gpu.block() * kThreads + gpu.thread()] = values(kThreads - 1 - gpu.thread());
    });
  };
  expect_race_without(reverse, 2);
}

TEST(Race, WithoutSyncBlockBeforeTheNextRound) {
  const auto rotate = [](bool right, int32_t* out) {
    return kernel([right, out](auto& gpu) {
      auto& values = shared_values(gpu);
      for (int round = 0; round < 2; ++round) {
        values(gpu.thread()) = round;
        gpu.sync_block();
        out[gpu.block() * kThreads + gpu.thread()] = values((gpu.thread() + 40) % kThreads);
        if (right) gpu.sync_block();
      }
    });
  };
  expect_race_without(rotate, 2);
}

TEST(Race, WithoutSyncWarp) {
  // A vote makes the lanes meet, but orders no memory.
  const auto reverse = [](bool right, int32_t* out) {
    return kernel([right, out](auto& gpu) {
      auto& values = shared_values(gpu);
      values(gpu.thread()) = gpu.thread();
      gpu.any(true);
      if (right) gpu.sync_warp();
      out[gpu.block() * kThreads + gpu.thread()] = values(gpu.thread() ^ 1);
    });
  };
  expect_race_without(reverse, 2);
}

TEST(Race, WithSyncWarpInPlaceOfSyncBlock) {
  const auto read_next_warp = [](bool right, int32_t* out) {
    return kernel([right, out](auto& gpu) {
      auto& values = shared_values(gpu);
      values(gpu.thread()) = 0;
      gpu.sync_block();
      values(gpu.thread()) = gpu.thread();
      gpu.sync_warp();
      if (right) gpu.sync_block();
      out[gpu.block() * kThreads + gpu.thread()] = values((gpu.thread() + gpu.warp_size) % kThreads);
    });
  };
  expect_race_without(read_next_warp, 2);
}

TEST(Race, WithoutSyncCluster) {
  const auto read_neighbour = [](bool right, int32_t* out) {
    return kernel<2>([right, out](auto& gpu) {
      auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
      shared.values(gpu.thread()) = 0;
      gpu.template sync_cluster<2>();
      shared.values(gpu.thread()) = gpu.thread();
      if (right) gpu.template sync_cluster<2>();
      const int neighbour = 1 - gpu.template cluster_rank<2>();
      out[gpu.block() * kThreads + gpu.thread()] =
          gpu.template remote<2>(shared, neighbour).values(gpu.thread());
      gpu.template sync_cluster<2>();
    });
  };
  expect_race_without(read_neighbour, 4);
}

TEST(Race, WithArriveClusterInPlaceOfSyncCluster) {
  // Arriving makes the blocks meet, but orders no memory.
  const auto read_neighbour = [](bool right, int32_t* out) {
    return kernel<2>([right, out](auto& gpu) {
      auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
      shared.values(gpu.thread()) = gpu.thread();
      if (right) {
        gpu.template sync_cluster<2>();
      } else {
        gpu.template arrive_cluster<2>();
        gpu.template wait_cluster<2>();
      }
      const int neighbour = 1 - gpu.template cluster_rank<2>();
      out[gpu.block() * kThreads + gpu.thread()] =
          gpu.template remote<2>(shared, neighbour).values(gpu.thread());
      gpu.template arrive_cluster<2>();
      gpu.template wait_cluster<2>();
    });
  };
  expect_race_without(read_neighbour, 4);
}

TEST(Race, WithoutSyncWarps) {
  const auto reverse = [](bool right, int32_t* out) {
    return kernel([right, out](auto& gpu) {
      auto& values = shared_values(gpu);
      constexpr int kWidth = 32;
      constexpr int kWarps = kThreads / kWidth;
      values(gpu.thread()) = 0;
      gpu.sync_block();
      values(gpu.thread()) = gpu.thread();
      int from = gpu.thread();
      if (gpu.warp() > 0) {
        if (right) gpu.template sync_warps<1, kWarps - 1, kWarps>();
        from = kWidth + (from + kWidth) % (kThreads - kWidth);
      }
      out[gpu.block() * kThreads + gpu.thread()] = values(from);
    });
  };
  expect_race_without(reverse, 2);
}

TEST(Race, WithoutAwaitInbox) {
  const auto send = [](bool right, int32_t* out) {
    return kernel<2>([right, out](auto& gpu) {
      struct Mail {
        typename std::remove_reference_t<decltype(gpu)>::template array<uint32_t, kThreads> received;
        typename std::remove_reference_t<decltype(gpu)>::inbox inbox;
      };
      auto& mail = gpu.template shared<Mail>();
      mail.received(gpu.thread()) = 0;
      if (gpu.thread() == 0) gpu.template open_inbox<2>(mail.inbox, 4 * kThreads);
      gpu.template sync_cluster<2>();
      if (gpu.thread() < kThreads / 4) {
        const int other = 1 - gpu.template cluster_rank<2>();
        gpu.template send4<2>(mail.inbox, mail.received, 4 * gpu.thread(), {1, 2, 3, 4}, other);
      }
      if (right) gpu.template await_inbox<2>(mail.inbox);
      out[gpu.block() * kThreads + gpu.thread()] = static_cast<int32_t>(mail.received(gpu.thread()));
      gpu.template sync_cluster<2>();
    });
  };
  expect_race_without(send, 2);
}

TEST(Race, WithoutSyncGrid) {
  const auto reverse = [](bool right, int32_t* memory) {
    return cooperative_kernel([right, memory](auto& gpu) {
      const int self = gpu.block() * kThreads + gpu.thread();
      memory[self] = self;
      gpu.sync_block();
      if (right) gpu.sync_grid();
      const int32_t value = memory[gpu.blocks() * kThreads - 1 - self];
      if (value == -1) gpu.pause();  // so that the read is not optimised away
    });
  };
  expect_race_without(reverse, 4);
}

TEST(Race, WithoutRelease) {
  const auto pass_on = [](bool right, int32_t* memory) {
    return cooperative_kernel([right, memory](auto& gpu) {
      if (gpu.thread() != 0) return;
      int32_t* flag = memory + 1;
      if (gpu.block() == 0) {
        memory[0] = 42;
        if (right) {
          gpu.store_release(flag, 1);
        } else {
          gpu.store(flag, 1);
        }
      } else {
        while (gpu.load_acquire(flag) == 0) gpu.pause();
        memory[kThreads] = memory[0];
      }
    });
  };
  expect_race_without(pass_on, 2);
}

TEST(Race, WithoutAtomics) {
  const auto count = [](bool right, int32_t* memory) {
    return kernel([right, memory](auto& gpu) {
      if (right) {
        gpu.fetch_add(memory, 1);
      } else {
        ++*memory;
      }
    });
  };
  expect_race_without(count, 2);
}

TEST(Race, BetweenBlocks) {
  const auto write = [](bool right, int32_t* memory) {
    return kernel([right, memory](auto& gpu) {
      gpu.sync_block();
      if (gpu.thread() == 0) memory[right ? gpu.block() : 0] = gpu.block();
    });
  };
  expect_race_without(write, 2);
}

}  // namespace
}  // namespace tokenyard::tests
