// Mistakes with memory: each kernel is wrong in one way, its twin is right.
#include <type_traits>
#include <vector>

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

template <class Thread>
struct Mail {
  typename Thread::template array<uint32_t, 2 * kThreads> received;
  typename Thread::inbox inbox;
};

// Each block of a cluster of two sends a word a thread to both. What `missing` names is left out or wrong.
enum class Missing { kNothing, kOpening, kRoom, kAwaiting };
auto send_to_both(Missing missing, int32_t* out) {
  return kernel<2>([missing, out](auto& gpu) {
    auto& mail = gpu.template shared<Mail<std::remove_reference_t<decltype(gpu)>>>();
    const int bytes = missing == Missing::kRoom ? 4 * kThreads : 2 * 4 * kThreads;
    if (gpu.thread() == 0 && missing != Missing::kOpening) gpu.template open_inbox<2>(mail.inbox, bytes);
    gpu.template arrive_cluster<2>();
    gpu.template wait_cluster<2>();
    if (gpu.thread() < kThreads / 4) {
      const int at = gpu.template cluster_rank<2>() * kThreads + 4 * gpu.thread();
      for (int to = 0; to < 2; ++to) {
        gpu.template send4<2>(mail.inbox, mail.received, at, {1, 1, 1, 1}, to);
      }
    }
    if (missing == Missing::kRoom)
      return gpu.template sync_cluster<2>();  // half has not come when it is full
    if (missing != Missing::kAwaiting) gpu.template await_inbox<2>(mail.inbox);
    const uint32_t other = mail.received((1 - gpu.template cluster_rank<2>()) * kThreads + gpu.thread());
    out[gpu.block() * kThreads + gpu.thread()] = static_cast<int32_t>(other);
    gpu.template sync_cluster<2>();
  });
}

TEST(Inbox, Misused) {
  std::vector<int32_t> out(2 * kThreads);
  expect_clean(send_to_both(Missing::kNothing, out.data()), 2);
  expect_found(send_to_both(Missing::kOpening, out.data()), 2, "reads shared memory that was not written");
  expect_found(send_to_both(Missing::kRoom, out.data()), 2, "sends more than the neighbour's inbox");
  expect_found_by_some(send_to_both(Missing::kAwaiting, out.data()), 2,
                       "reads shared memory that was not written");
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
