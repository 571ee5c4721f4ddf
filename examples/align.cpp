// Four tokens choose two of three experts each. Each expert's pairs, in blocks of four slots:
#include <cstdio>
#include <vector>

#include "tokenyard/tokenyard.hpp"

int main() {
  const std::vector<int32_t> topk_ids{2, 0, 2, 1, 0, 2, 2, 0};  // [4, 2], row-major
  const auto order = tokenyard::align(topk_ids, /*top_k=*/2, /*num_experts=*/3, /*block_size=*/4);
  for (size_t slot = 0; slot < order.sorted_pair_ids.size(); ++slot) {
    if (slot % 4 == 0) std::printf("expert %d:", order.block_expert[slot / 4]);
    std::printf(" %d%s", order.sorted_pair_ids[slot], slot % 4 == 3 ? "\n" : "");
  }
}
