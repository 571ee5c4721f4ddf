// Kernels from lambdas, run by the executor on many schedules.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "port/host.hpp"
#include "port/simt/options.hpp"

namespace tokenyard::tests {

inline constexpr int kThreads = 128;
inline constexpr uint64_t kSeeds = 25;

template <class Body, int kCluster, bool kCooperative>
struct LambdaKernel {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kCooperative;

  Body body;

  template <class Thread>
  void operator()(Thread& gpu) const {
    body(gpu);
  }
};

template <int kCluster = 1, bool kCooperative = false, class Body>
LambdaKernel<Body, kCluster, kCooperative> kernel(Body body) {
  return {body};
}

template <class Body>
auto cooperative_kernel(Body body) {
  return kernel<1, true>(body);
}

// The block's shared memory in these tests: an element per thread.
template <class Thread>
struct Shared {
  typename Thread::template array<int32_t, kThreads> values;
};
template <class Thread>
auto& shared_values(Thread& gpu) {
  return gpu.template shared<Shared<Thread>>().values;
}

template <int WarpSize, class Kernel>
Status run(const Kernel& kernel, int blocks, uint64_t seed) {
  port::simt::Options options;
  options.seed = seed;
  const port::simt::Scope scope(options);
  return port::host::Port<WarpSize>::launch(kernel, blocks, nullptr);
}

// How many of the schedules, with both widths of warps, end in an error that says `what`; all others must
// end well.
template <class Kernel>
uint64_t count_found(const Kernel& kernel, int blocks, const std::string& what) {
  uint64_t found = 0;
  const auto count = [&](const Status& status) {
    if (status.ok()) return;
    EXPECT_EQ(status.code(), TY_DEVICE_ERROR);
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
    ++found;
  };
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    count(run<32>(kernel, blocks, seed));
    count(run<64>(kernel, blocks, seed));
  }
  return found;
}

template <class Kernel>
void expect_clean(const Kernel& kernel, int blocks) {
  EXPECT_EQ(count_found(kernel, blocks, "no error"), 0u);
}
// A mistake that every schedule shows, and one that depends on who comes first.
template <class Kernel>
void expect_found(const Kernel& kernel, int blocks, const std::string& what) {
  EXPECT_EQ(count_found(kernel, blocks, what), 2 * kSeeds) << what;
}
template <class Kernel>
void expect_found_by_some(const Kernel& kernel, int blocks, const std::string& what) {
  EXPECT_GT(count_found(kernel, blocks, what), 0u) << what;
}

}  // namespace tokenyard::tests
