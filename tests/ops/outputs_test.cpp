// What a warp writes of an output block that lies beyond the room that there is.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "align/contract.hpp"
#include "align/kernel_outputs.hpp"
#include "port/host.hpp"

namespace tokenyard::test {
namespace {

struct WriteUnusedBlock {
  static constexpr int threads = 64;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;
  template <class Thread>
  struct Shared {};

  align::Outputs<false> out;
  int32_t index;

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out.write_whole_block(gpu, index, -1, 0);
  }
};

// Its first slot may be beyond 2^32.
TEST(WholeBlock, IsNotWrittenBeyondTheCapacity) {
  for (const int32_t block : {100, (1 << 27) + 1, 1 << 28, std::numeric_limits<int32_t>::max()}) {
    std::vector<int32_t> slots(64, 7), experts(1, 7);
    align::Problem problem{};
    problem.block_size = block;
    problem.capacity = static_cast<int64_t>(slots.size());
    problem.sorted_pair_ids = slots.data();
    problem.block_expert = experts.data();
    for (int32_t index = 1; index < 32; ++index) {
      const WriteUnusedBlock kernel{align::Outputs<false>(problem), index};
      ASSERT_TRUE(port::host::Port<64>::launch(kernel, 1, nullptr).ok());
      ASSERT_EQ(slots, std::vector<int32_t>(64, 7)) << "block " << index << " of " << block;
      ASSERT_EQ(experts[0], 7);
    }
  }
}

}  // namespace
}  // namespace tokenyard::test
