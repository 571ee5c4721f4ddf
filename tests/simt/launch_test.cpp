// What a launch refuses, what its errors say, and that a seed replays its schedule.
#include <set>
#include <thread>
#include <vector>

#include "kernel.hpp"

namespace tokenyard::tests {
namespace {

template <int kThreads, int kCluster, bool kCooperative>
struct Shape {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kCooperative;

  template <class Thread>
  void operator()(Thread&) const {}
};

TEST(Launch, RefusesWhatADeviceWould) {
  const auto error = [](const auto& kernel, int blocks) { return run<32>(kernel, blocks, 0).message(); };
  const auto expect = [](const std::string& message, const char* what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  EXPECT_EQ(error(Shape<256, 8, true>(), 8), "");
  expect(error(Shape<48, 1, false>(), 1), "blocks of 48 threads; expected whole warps of 32");
  expect(error(Shape<2048, 1, false>(), 1), "blocks of 2048 threads");
  expect(error(Shape<64, 4, false>(), 6), "a grid of 6 blocks; expected whole clusters of 4");
  expect(error(Shape<64, 16, false>(), 16), "clusters of 16 blocks; expected 1 to 8");
  expect(error(Shape<64, 1, false>(), 0), "a grid of 0 blocks");
  expect(error(Shape<1024, 1, true>(), 17), "at most 16 can be resident");
}

TEST(Launch, NamesThePlaceOfAnError) {
  const auto late = kernel([](auto& gpu) {
    if (gpu.block() == 2 && gpu.thread() == 70) shared_values(gpu)(1000) = 1;
  });
  const int line = __LINE__ - 2;
  const std::string message = run<32>(late, 3, 77).message();
  for (const std::string& part : {std::string("LambdaKernel"), std::string("block 2, thread 70 (lane 6)"),
                                  "launch_test.cpp:" + std::to_string(line), std::string("seed 77")}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

TEST(Launch, RunsAfterAnError) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(run<32>(kernel([](auto& gpu) {
                           if (gpu.thread() != 3) gpu.sync_block();
                         }),
                         100, i)
                     .ok());
    EXPECT_TRUE(run<32>(kernel([](auto& gpu) { gpu.sync_block(); }), 100, i).ok());
  }
}

Status run_linked(const auto& kernel) { return port::host::Port<32>::launch(kernel, 3, nullptr, true); }

TEST(LinkedLaunch, HasToWaitBeforeItTouchesGlobalMemory) {
  alignas(16) int32_t word[4] = {};
  const auto expect = [](const Status& status, const std::string& what) {
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  };
  EXPECT_TRUE(run_linked(kernel([&](auto& gpu) {
                gpu.let_next_begin();
                gpu.sync_block();
                gpu.await_previous();
                gpu.fetch_add(&word[0], 1);
              })).ok());
  EXPECT_EQ(word[0], 3 * kThreads);

  const std::string too_early = "global memory in a linked launch, before await_previous()";
  expect(run_linked(kernel([&](auto& gpu) {
           gpu.load(&word[0]);
           gpu.await_previous();
         })),
         too_early);
  expect(run_linked(kernel([&](auto& gpu) {
           if (gpu.thread() > 0) gpu.await_previous();  // each thread has to
           gpu.sync_block();
           gpu.store(&word[0], 1);
           gpu.await_previous();
         })),
         too_early);
  expect(run_linked(kernel([&](auto& gpu) {
           gpu.load4(word);
           gpu.await_previous();
         })),
         too_early);
  expect(run_linked(kernel([&](auto& gpu) { gpu.sync_block(); })),
         "left the kernel of a linked launch without await_previous()");
  EXPECT_TRUE(run<32>(kernel([&](auto& gpu) { gpu.load(&word[0]); }), 3, 0).ok());  // not linked
}

// The order in which threads come to three places, as tickets.
std::vector<int32_t> order(uint64_t seed) {
  constexpr int kBlocks = 12;
  std::vector<int32_t> tickets(3 * kBlocks * kThreads);
  int32_t next = 0;
  const auto draw = kernel([&next, out = tickets.data()](auto& gpu) {
    int32_t* mine = out + 3 * (gpu.block() * kThreads + gpu.thread());
    mine[0] = gpu.fetch_add(&next, 1);
    gpu.any(true);
    mine[1] = gpu.fetch_add(&next, 1);
    gpu.sync_block();
    mine[2] = gpu.fetch_add(&next, 1);
  });
  EXPECT_TRUE(run<32>(draw, kBlocks, seed).ok());
  return tickets;
}

TEST(Schedule, IsReplayedByItsSeed) {
  std::set<std::vector<int32_t>> orders;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(order(seed), order(seed));
    orders.insert(order(seed));
  }
  EXPECT_EQ(orders.size(), kSeeds);
}

TEST(Schedule, IsItsOwnOnEveryHostThread) {
  std::vector<std::vector<int32_t>> orders(4);
  std::vector<std::thread> threads;
  threads.reserve(orders.size());
  for (auto& mine : orders) threads.emplace_back([&mine] { mine = order(5); });
  for (auto& thread : threads) thread.join();
  for (const auto& one : orders) EXPECT_EQ(one, order(5));
}

TEST(Schedule, DiffersBetweenLaunchesWithoutASeed) {
  const auto first_block = [] {
    int32_t first = -1;
    const auto note = kernel([&first](auto& gpu) {
      if (gpu.load(&first) < 0) gpu.store(&first, gpu.block());
    });
    EXPECT_TRUE(port::host::Port<32>::launch(note, 8, nullptr).ok());
    return first;
  };
  std::set<int32_t> firsts;
  for (int i = 0; i < 50; ++i) firsts.insert(first_block());
  EXPECT_GT(firsts.size(), 4u);
}

}  // namespace
}  // namespace tokenyard::tests
