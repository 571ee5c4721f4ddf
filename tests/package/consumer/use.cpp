// The C++ layer: the same problem as in use.c.
#include <cstdio>
#include <vector>

#include "tokenyard/tokenyard.hpp"

int main() {
  const std::vector<int32_t> ids{2, 0, 2, 1};
  const tokenyard::AlignedOrder order =
      tokenyard::align(ids, /*top_k=*/2, /*num_experts=*/3, /*block_size=*/2);
  if (order.sorted_pair_ids != std::vector<int32_t>{1, 4, 3, 4, 0, 2}) return 1;
  try {
    tokenyard::align(ids, 3, 3, 2);
    return 1;
  } catch (const tokenyard::Error& error) {
    std::printf("Tokenyard refuses from C++: %s\n", error.what());
  }
}
