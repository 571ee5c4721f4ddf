// Compares what calls have written with what they should have, on the device: so that each of a million is
// checked.
#pragma once

#include <cstdint>

#include "port/port.hpp"
#include "runtime/runtime.hpp"
#include "runtime/status.hpp"

namespace tokenyard::test {

// Counts the elements that differ, and poisons them all for the next calls.
struct CompareAndPoison {
  static constexpr int threads = 256;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  static constexpr int32_t kPoison = -559038737;

  template <class Thread>
  struct Shared {};

  int32_t* got;         // [size]
  const int32_t* want;  // [size]
  int64_t size;
  int32_t* differ;  // [1] added to

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const int64_t step = int64_t{threads} * gpu.blocks();
    for (int64_t i = int64_t{threads} * gpu.block() + gpu.thread(); i < size; i += step) {
      if (got[i] != want[i]) gpu.fetch_add(differ, 1);
      got[i] = kPoison;
    }
  }
};

Status compare_on_cuda(const CompareAndPoison& all, Stream stream);

}  // namespace tokenyard::test
