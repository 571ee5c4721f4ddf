// Mistakes with memory: each kernel is wrong in one way, its twin is right.
#include "kernel.hpp"

namespace tokenyard::tests {
namespace {

TEST(SharedMemory, ReadBeforeWritten) {
  const auto read_neighbour = [](bool right) {
    return kernel([right](auto& gpu) {
      auto& values = shared_values(gpu);
      values(gpu.thread()) = gpu.thread();
      if (right) gpu.sync_block();
      const int32_t value = values(kThreads - 1 - gpu.thread());
      static_cast<void>(value);
    });
  };
  expect_clean(read_neighbour(true), 4);
  expect_found_by_some(read_neighbour(false), 4, "reads shared memory that was not written");
}

TEST(SharedMemory, NeverWritten) {
  const auto count = [](bool right) {
    return kernel([right](auto& gpu) {
      auto& values = shared_values(gpu);
      if (right && gpu.thread() == 0) values(0) = 0;
      gpu.sync_block();
      gpu.add(values(0), 1);
    });
  };
  expect_clean(count(true), 4);
  expect_found(count(false), 4, "reads shared memory that was not written");
}

TEST(SharedMemory, OfAnEarlierBlock) {
  // Many more blocks than are in flight: what a block finds is not what another left there.
  const auto only_even_blocks_write = kernel([](auto& gpu) {
    auto& values = shared_values(gpu);
    if (gpu.block() % 2 == 0) values(gpu.thread()) = 1;
    const int32_t value = values(gpu.thread());
    static_cast<void>(value);
  });
  expect_found(only_even_blocks_write, 100, "reads shared memory that was not written");
}

TEST(SharedMemory, OutOfRange) {
  const auto write = [](int index) { return kernel([index](auto& gpu) { shared_values(gpu)(index) = 1; }); };
  expect_clean(write(kThreads - 1), 1);
  expect_found(write(kThreads), 1, "index 128 of an array of 128");
  expect_found(write(-1), 1, "index -1 of an array of 128");
}

TEST(SharedMemory, OfTwoTypes) {
  const auto twice = kernel([](auto& gpu) {
    gpu.template shared<int32_t>();
    gpu.template shared<uint32_t>();
  });
  expect_found(twice, 1, "a block has one");
}

TEST(RemoteMemory, OfABlockThatLeft) {
  const auto read_neighbour = [](bool right) {
    return kernel<2>([right](auto& gpu) {
      auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
      shared.values(gpu.thread()) = 1;
      gpu.template sync_cluster<2>();
      const int neighbour = 1 - gpu.template cluster_rank<2>();
      const int32_t value = gpu.template remote<2>(shared, neighbour).values(gpu.thread());
      static_cast<void>(value);
      if (right) gpu.template sync_cluster<2>();
    });
  };
  expect_clean(read_neighbour(true), 8);
  expect_found_by_some(read_neighbour(false), 8, "reads the shared memory of a block that has left");
}

TEST(RemoteMemory, ReadBeforeWritten) {
  const auto without_barrier = kernel<2>([](auto& gpu) {
    auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
    shared.values(gpu.thread()) = 1;
    const int32_t value = gpu.template remote<2>(shared, 0).values(gpu.thread());
    static_cast<void>(value);
    gpu.template sync_cluster<2>();
  });
  expect_found_by_some(without_barrier, 8, "reads shared memory that was not written");
}

TEST(RemoteMemory, AfterLeavingTheCluster) {
  const auto read_neighbour = [](bool right) {
    return kernel<2>([right](auto& gpu) {
      auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
      shared.values(gpu.thread()) = 1;
      gpu.template sync_cluster<2>();
      if (!right) gpu.template arrive_cluster<2>();
      const int32_t value = gpu.template remote<2>(shared, 0).values(gpu.thread());
      static_cast<void>(value);
      if (right) gpu.template arrive_cluster<2>();
      gpu.template wait_cluster<2>();
    });
  };
  expect_clean(read_neighbour(true), 8);
  expect_found(read_neighbour(false), 8, "remote() after arrive_cluster()");
}

TEST(RemoteMemory, Misused) {
  const auto reach = [](int rank, bool write) {
    return kernel<2>([rank, write](auto& gpu) {
      auto& shared = gpu.template shared<Shared<std::remove_reference_t<decltype(gpu)>>>();
      shared.values(gpu.thread()) = 1;
      gpu.template sync_cluster<2>();
      auto& remote = gpu.template remote<2>(shared, rank);
      if (write) remote.values(gpu.thread()) = 2;
      gpu.template sync_cluster<2>();
    });
  };
  expect_clean(reach(1, false), 2);
  expect_found(reach(1, true), 2, "writes the shared memory of another block");
  expect_found(reach(2, false), 2, "remote() of rank 2");
}

TEST(GlobalMemory, Misaligned) {
  alignas(16) static constexpr int32_t kMemory[8] = {};
  const auto load = [](const int32_t* from) { return kernel([from](auto& gpu) { gpu.load4(from); }); };
  expect_clean(load(kMemory), 1);
  expect_found(load(kMemory + 1), 1, "expected an address aligned to 16 bytes");
}

}  // namespace
}  // namespace tokenyard::tests
