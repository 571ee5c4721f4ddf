// A small call on the CPU that is right: tests break one thing of it.
#pragma once

#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard::test {

inline constexpr ty_device kCpu{TY_CPU, 0};

// 4 tokens, 2 of 8 experts each, blocks of 4: at most 8 blocks are used.
struct ValidCall {
  std::vector<int32_t> ids{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<int32_t> expert_map{0, 1, 2, 3, -1, -1, -1, -1};
  std::vector<int32_t> sorted_pair_ids = std::vector<int32_t>(32, -7);
  std::vector<int32_t> block_expert = std::vector<int32_t>(8, -7);
  int32_t num_padded = -7;
  ty_align_args args = TY_ALIGN_ARGS_INIT;

  ValidCall() {
    args.ids_dtype = TY_INT32;
    args.topk_ids = ids.data();
    args.num_tokens = 4;
    args.top_k = 2;
    args.num_experts = 8;
    args.block_size = 4;
    args.capacity = 32;
    args.sorted_pair_ids = sorted_pair_ids.data();
    args.block_expert = block_expert.data();
    args.num_padded = &num_padded;
  }
  ValidCall(const ValidCall&) = delete;
  ValidCall& operator=(const ValidCall&) = delete;

  void with_map() {
    args.expert_map = expert_map.data();
    args.num_local_experts = 4;
  }
};

}  // namespace tokenyard::test
