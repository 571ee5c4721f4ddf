// What a port promises, operation by operation: the same tests on every port. A port's file (conformance_*)
// says how to get at the port and its memory, and instantiates the suite:
//
//   struct Target {
//     using Port = ...;
//     static Runtime& runtime();
//   };
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "device_array.hpp"
#include "kernels.hpp"

namespace tokenyard::tests {

using kernels::kBlocks;
using kernels::kClusterSize;
using kernels::kThreads;

inline constexpr int kTotal = kBlocks * kThreads;  // threads of a launch

template <class T>
std::vector<T> random_values(uint64_t seed = 1, size_t size = kTotal) {
  std::mt19937_64 random(seed);
  std::vector<T> out(size);
  for (T& value : out) value = static_cast<T>(random());
  return out;
}

template <class Target>
class Conformance : public testing::Test {
 public:
  using Port = typename Target::Port;
  static constexpr int kWarp = Port::Thread::warp_size;

  void SetUp() override {
    if (runtime().device_count() == 0) GTEST_SKIP() << "no device";
  }

  static Runtime& runtime() { return Target::runtime(); }

  template <class Kernel>
  static void launch(const Kernel& kernel) {
    const Status status = Port::launch(kernel, kBlocks, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // The lane of a thread, by its number in the grid, and the first thread of its warp.
  static int lane(int thread) { return thread % kWarp; }
  static int first_of_warp(int thread) { return thread - lane(thread); }

  template <class T>
  void check_load_pack() {
    const auto values = random_values<T>();
    DeviceArray in(runtime(), values);
    DeviceArray<T> out(runtime(), kTotal);
    launch(kernels::LoadPack<T>(in.data(), out.data()));
    const auto got = out.values();
    constexpr int kItems = port::Pack<T>::kItems;
    for (int i = 0; i < kTotal; ++i) {
      T sum = 0;
      for (int item = 0; item < kItems; ++item) sum += values[i / kItems * kItems + item];
      EXPECT_EQ(got[i], sum);
    }
  }

  template <class T>
  void check_shfl() {
    const auto values = random_values<T>();
    auto from = random_values<int32_t>(2);
    for (int32_t& lane : from) lane &= kWarp - 1;
    DeviceArray in(runtime(), values);
    DeviceArray lanes(runtime(), from);
    DeviceArray<T> out(runtime(), kTotal);
    launch(kernels::Shuffle<T>(in.data(), lanes.data(), out.data()));
    const auto got = out.values();
    for (int i = 0; i < kTotal; ++i) EXPECT_EQ(got[i], values[first_of_warp(i) + from[i]]);
  }

  template <class T>
  void check_shfl_up() {
    const auto values = random_values<T>();
    for (int delta = 0; delta < kWarp; ++delta) {
      DeviceArray in(runtime(), values);
      DeviceArray<T> out(runtime(), kTotal);
      launch(kernels::ShuffleUp<T>(in.data(), delta, out.data()));
      const auto got = out.values();
      for (int i = 0; i < kTotal; ++i) EXPECT_EQ(got[i], values[lane(i) < delta ? i : i - delta]);
    }
  }

  template <class T>
  void check_shfl_xor() {
    const auto values = random_values<T>();
    for (int mask = 0; mask < kWarp; ++mask) {
      DeviceArray in(runtime(), values);
      DeviceArray<T> out(runtime(), kTotal);
      launch(kernels::ShuffleXor<T>(in.data(), mask, out.data()));
      const auto got = out.values();
      for (int i = 0; i < kTotal; ++i) EXPECT_EQ(got[i], values[first_of_warp(i) + (lane(i) ^ mask)]);
    }
  }

  template <class T>
  void check_load_store() {
    const auto values = random_values<T>();
    DeviceArray in(runtime(), values);
    DeviceArray<T> out(runtime(), kTotal);
    launch(kernels::LoadStore<T>(in.data(), out.data()));
    EXPECT_EQ(out.values(), values);
  }

  template <class T>
  void check_acquire_release() {
    DeviceArray<int32_t> message(runtime(), kBlocks + 1);
    std::vector<T> first_set(kBlocks + 1);
    first_set[0] = 1;
    DeviceArray flag(runtime(), first_set);
    launch(kernels::PassOn<T>(message.data(), flag.data()));
    const auto got = message.values();
    for (int i = 0; i <= kBlocks; ++i) EXPECT_EQ(got[i], i);
  }
};

TYPED_TEST_SUITE_P(Conformance);

// ---- where am I ----

TYPED_TEST_P(Conformance, Position) {
  DeviceArray<kernels::Position> out(this->runtime(), kTotal);
  this->launch(kernels::WhereAmI(out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    const int thread = i % kThreads;
    EXPECT_EQ(got[i].thread, thread);
    EXPECT_EQ(got[i].thread_at_hand, thread);
    EXPECT_EQ(got[i].threads, kThreads);
    EXPECT_EQ(got[i].block, i / kThreads);
    EXPECT_EQ(got[i].blocks, kBlocks);
    EXPECT_EQ(got[i].lane, thread % this->kWarp);
    EXPECT_EQ(got[i].warp, thread / this->kWarp);
    EXPECT_EQ(got[i].warps, kThreads / this->kWarp);
  }
}

TYPED_TEST_P(Conformance, LanesBelow) {
  DeviceArray<uint64_t> out(this->runtime(), kTotal);
  this->launch(kernels::LanesBelow(out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) EXPECT_EQ(got[i], (uint64_t{1} << this->lane(i)) - 1);
}

TYPED_TEST_P(Conformance, PopcountAndLowest) {
  auto masks = random_values<uint64_t>();
  const auto thinner = random_values<uint64_t>(2);
  for (int i = 0; i < kTotal; ++i) {
    masks[i] &= thinner[i] << i % 64;
    masks[i] &= ~uint64_t{0} >> (64 - this->kWarp);
    if (masks[i] == 0) masks[i] = uint64_t{1} << (this->kWarp - 1);
  }
  masks[0] = ~uint64_t{0} >> (64 - this->kWarp);
  DeviceArray in(this->runtime(), masks);
  DeviceArray<kernels::Bits> out(this->runtime(), kTotal);
  this->launch(kernels::CountBits(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    EXPECT_EQ(got[i].popcount, __builtin_popcountll(masks[i]));
    EXPECT_EQ(got[i].lowest, __builtin_ctzll(masks[i]));
  }
}

// ---- warp ----

TYPED_TEST_P(Conformance, Shfl) {
  this->template check_shfl<int32_t>();
  this->template check_shfl<uint32_t>();
  this->template check_shfl<uint64_t>();
}

TYPED_TEST_P(Conformance, ShflUp) {
  this->template check_shfl_up<int32_t>();
  this->template check_shfl_up<uint64_t>();
}

TYPED_TEST_P(Conformance, ShflXor) {
  this->template check_shfl_xor<int32_t>();
  this->template check_shfl_xor<uint64_t>();
}

TYPED_TEST_P(Conformance, BallotAndAny) {
  auto votes = random_values<int32_t>();
  for (int i = 0; i < kTotal; ++i) {
    votes[i] &= 1;
    if (i < kThreads) votes[i] = 0;                         // a block of warps without a vote,
    if (i >= kTotal - kThreads) votes[i] = 1;               // one of warps that agree,
    if (i / kThreads == 1) votes[i] = this->lane(i) == 17;  // one with a single vote in each warp
  }
  DeviceArray in(this->runtime(), votes);
  DeviceArray<kernels::Vote> out(this->runtime(), kTotal);
  this->launch(kernels::Votes(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    uint64_t expected = 0;
    for (int lane = 0; lane < this->kWarp; ++lane) {
      expected |= static_cast<uint64_t>(votes[this->first_of_warp(i) + lane]) << lane;
    }
    EXPECT_EQ(got[i].ballot, expected);
    EXPECT_EQ(got[i].any != 0, expected != 0);
  }
}

TYPED_TEST_P(Conformance, Match) {
  auto values = random_values<int32_t>();
  for (int i = 0; i < kTotal; ++i) {
    if (i / kThreads == 1) values[i] = -1;                  // all equal
    if (i / kThreads > 1) values[i] = (values[i] & 7) - 4;  // some equal, negative ones too
  }
  DeviceArray in(this->runtime(), values);
  DeviceArray<uint64_t> out(this->runtime(), kTotal);
  this->launch(kernels::Match(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    uint64_t expected = 0;
    for (int lane = 0; lane < this->kWarp; ++lane) {
      if (values[this->first_of_warp(i) + lane] == values[i]) expected |= uint64_t{1} << lane;
    }
    EXPECT_EQ(got[i], expected);
  }
}

TYPED_TEST_P(Conformance, ReduceAdd) {
  const auto values = random_values<int32_t>();  // the sums wrap around
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::ReduceAdd(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    uint32_t sum = 0;
    for (int lane = 0; lane < this->kWarp; ++lane) {
      sum += static_cast<uint32_t>(values[this->first_of_warp(i) + lane]);
    }
    EXPECT_EQ(got[i], static_cast<int32_t>(sum));
  }
}

TYPED_TEST_P(Conformance, ReduceMax) {
  const auto values = random_values<int32_t>();
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::ReduceMax(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    const auto first = values.begin() + this->first_of_warp(i);
    EXPECT_EQ(got[i], *std::max_element(first, first + this->kWarp));
  }
}

TYPED_TEST_P(Conformance, LoadPack) {
  this->template check_load_pack<uint32_t>();
  this->template check_load_pack<uint64_t>();
}

TYPED_TEST_P(Conformance, SyncWarp) {
  const auto values = random_values<int32_t>();
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::SyncWarp(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    EXPECT_EQ(got[i], values[this->first_of_warp(i) + this->kWarp - 1 - this->lane(i)]);
  }
}

// ---- block, cluster, grid ----

TYPED_TEST_P(Conformance, SyncBlock) {
  const auto values = random_values<int32_t>();
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  DeviceArray<int32_t> lone_out(this->runtime(), kTotal);
  this->launch(kernels::SyncBlock(in.data(), out.data()));
  this->launch(kernels::LoneCluster(in.data(), lone_out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    EXPECT_EQ(got[i], values[i / kThreads * kThreads + kThreads - 1 - i % kThreads]);
  }
  EXPECT_EQ(lone_out.values(), got);
}

TYPED_TEST_P(Conformance, ClusterPosition) {
  if constexpr (TestFixture::Port::has_clusters) {
    DeviceArray<kernels::ClusterPosition> out(this->runtime(), kTotal);
    this->launch(kernels::WhereInCluster(out.data()));
    const auto got = out.values();
    for (int i = 0; i < kTotal; ++i) {
      EXPECT_EQ(got[i].cluster, i / kThreads / kClusterSize);
      EXPECT_EQ(got[i].rank, i / kThreads % kClusterSize);
    }
  } else {
    GTEST_SKIP() << "no clusters";
  }
}

TYPED_TEST_P(Conformance, SyncArriveAndRemote) {
  if constexpr (TestFixture::Port::has_clusters) {
    const auto values = random_values<int32_t>();
    DeviceArray in(this->runtime(), values);
    DeviceArray<int32_t> out(this->runtime(), kTotal);
    DeviceArray<int32_t> left_out(this->runtime(), kTotal);
    this->launch(kernels::ReadNeighbour(in.data(), out.data()));
    this->launch(kernels::ArriveCluster(in.data(), left_out.data()));
    const auto got = out.values();
    for (int i = 0; i < kTotal; ++i) {
      const int block = i / kThreads;
      const int right = block / kClusterSize * kClusterSize + (block + 1) % kClusterSize;
      EXPECT_EQ(got[i], values[right * kThreads + i % kThreads]);
    }
    EXPECT_EQ(left_out.values(), got);
  } else {
    GTEST_SKIP() << "no clusters";
  }
}

TYPED_TEST_P(Conformance, Inbox) {
  if constexpr (TestFixture::Port::has_clusters) {
    const auto values = random_values<int32_t>();
    DeviceArray in(this->runtime(), values);
    DeviceArray<int32_t> out(this->runtime(), kTotal);
    this->launch(kernels::SendToAll(in.data(), out.data()));
    const auto got = out.values();
    for (int i = 0; i < kTotal; ++i) {
      const int cluster = i / kThreads / kClusterSize;
      uint32_t sum = 0;
      for (int rank = 0; rank < kClusterSize; ++rank) {
        sum += static_cast<uint32_t>(values[(cluster * kClusterSize + rank) * kThreads + i % kThreads]);
      }
      EXPECT_EQ(static_cast<uint32_t>(got[i]), sum);
    }
  } else {
    GTEST_SKIP() << "no clusters";
  }
}

TYPED_TEST_P(Conformance, SyncWarps) {
  using Thread = typename TestFixture::Port::Thread;
  constexpr int kWidth = Thread::warp_size;
  const auto values = random_values<int32_t>();
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::SyncWarps(in.data(), out.data()));
  const auto got = out.values();
  for (int i = 0; i < kTotal; ++i) {
    const int thread = i % kThreads;
    int from = thread;
    if (Thread::has_clusters) {
      from = thread < kWidth ? kWidth - 1 - thread : kWidth + (thread - kWidth + 7) % (kThreads - kWidth);
    }
    EXPECT_EQ(got[i], values[i - thread + from]);
  }
}

TYPED_TEST_P(Conformance, SyncGrid) {
  auto values = random_values<int32_t>();
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> middle(this->runtime(), kTotal);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::SyncGrid(in.data(), middle.data(), out.data()));
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(out.values(), values);
}

// ---- shared memory ----

TYPED_TEST_P(Conformance, SharedAtomics) {
  constexpr int kCells = kernels::SharedAtomics::kCells;
  constexpr int kPerCell = kThreads / kCells;
  DeviceArray<int32_t> added(this->runtime(), kBlocks * kCells);
  DeviceArray<uint32_t> added_unsigned(this->runtime(), kBlocks * kCells);
  DeviceArray<uint32_t> bits(this->runtime(), kBlocks * kCells);
  DeviceArray<uint64_t> wide_bits(this->runtime(), kBlocks * kCells);
  DeviceArray<int32_t> fetched(this->runtime(), kTotal);
  this->launch(kernels::SharedAtomics(added.data(), added_unsigned.data(), bits.data(), wide_bits.data(),
                                      fetched.data()));

  const auto sums = added.values();
  for (int i = 0; i < kBlocks * kCells; ++i) {
    EXPECT_EQ(sums[i], -(kPerCell * (i % kCells) + kCells * kPerCell * (kPerCell - 1) / 2));
  }
  EXPECT_EQ(added_unsigned.values(), std::vector<uint32_t>(kBlocks * kCells, kPerCell));
  EXPECT_EQ(bits.values(), std::vector<uint32_t>(kBlocks * kCells, (1u << kPerCell) - 1));
  EXPECT_EQ(wide_bits.values(), std::vector<uint64_t>(kBlocks * kCells, 0x1111111111111111u));
  const auto tickets = fetched.values();
  for (int block = 0; block < kBlocks; ++block) {
    for (int cell = 0; cell < kCells; ++cell) {
      std::vector<int32_t> drawn;
      for (int i = cell; i < kThreads; i += kCells) drawn.push_back(tickets[block * kThreads + i]);
      std::sort(drawn.begin(), drawn.end());
      for (int i = 0; i < kPerCell; ++i) EXPECT_EQ(drawn[i], i);
    }
  }
}

TYPED_TEST_P(Conformance, Zero) {
  constexpr int kCells = kernels::Zero::kCells;
  DeviceArray<int32_t> out(this->runtime(), kBlocks * kCells);
  this->launch(kernels::Zero(out.data()));
  const auto got = out.values();
  for (int i = 0; i < kBlocks * kCells; ++i) {
    const int cell = i % kCells;
    EXPECT_EQ(got[i], (cell >= 4 && cell < 404 ? 0 : 1) + (cell >= 8 && cell < 168 ? 0 : 2)) << cell;
  }
}

// ---- global memory ----

TYPED_TEST_P(Conformance, LoadAndStore) {
  this->template check_load_store<int32_t>();
  this->template check_load_store<uint32_t>();
  this->template check_load_store<uint64_t>();
}

TYPED_TEST_P(Conformance, LoadAndStore4) {
  auto values = random_values<int32_t>(1, 4 * kTotal);
  DeviceArray in(this->runtime(), values);
  DeviceArray<int32_t> out(this->runtime(), 4 * kTotal);
  this->launch(kernels::LoadStore4(in.data(), out.data()));
  for (auto four = values.begin(); four != values.end(); four += 4) std::reverse(four, four + 4);
  EXPECT_EQ(out.values(), values);
}

TYPED_TEST_P(Conformance, AcquireReleaseAndPause) {
  this->template check_acquire_release<int32_t>();
  this->template check_acquire_release<uint64_t>();
}

TYPED_TEST_P(Conformance, FetchAdd) {
  DeviceArray<int32_t> counter(this->runtime(), 1);
  DeviceArray<int32_t> out(this->runtime(), kTotal);
  this->launch(kernels::FetchAdd(counter.data(), out.data()));
  auto tickets = out.values();
  std::sort(tickets.begin(), tickets.end());
  for (int i = 0; i < kTotal; ++i) EXPECT_EQ(tickets[i], 2 * i);
  EXPECT_EQ(counter.values()[0], 2 * kTotal);
}

// ---- the host side ----

TYPED_TEST_P(Conformance, LinkedLaunch) {
  using Port = typename TypeParam::Port;
  auto& runtime = TypeParam::runtime();
  auto values = random_values<int32_t>();
  for (int32_t& value : values) value &= 0xffff;
  const DeviceArray in(runtime, values);
  for (int round = 0; round < 20; ++round) {
    DeviceArray<int32_t> doubled(runtime, kTotal), copied(runtime, kTotal);
    this->launch(kernels::SlowDouble(in.data(), doubled.data()));
    const Status status =
        Port::launch(kernels::AwaitAndCopy(doubled.data(), copied.data()), kBlocks, nullptr, true);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto got = copied.values();
    for (int i = 0; i < kTotal; ++i) ASSERT_EQ(got[i], 2 * values[kTotal - 1 - i]);
  }
}

TYPED_TEST_P(Conformance, ResidentBlocks) {
  DeviceProperties device;
  ASSERT_TRUE(this->runtime().properties(0, device).ok());
  int blocks = 0;
  const Status status =
      TestFixture::Port::template resident_blocks<kernels::SyncGrid>(device.multiprocessors, blocks);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GE(blocks, device.multiprocessors);
}

REGISTER_TYPED_TEST_SUITE_P(Conformance, Position, LanesBelow, PopcountAndLowest, Shfl, ShflUp, ShflXor,
                            BallotAndAny, Match, ReduceAdd, ReduceMax, LoadPack, SyncWarp, SyncBlock,
                            ClusterPosition, SyncArriveAndRemote, Inbox, SyncWarps, SyncGrid, SharedAtomics,
                            Zero, LoadAndStore, LoadAndStore4, AcquireReleaseAndPause, FetchAdd, LinkedLaunch,
                            ResidentBlocks);

}  // namespace tokenyard::tests
