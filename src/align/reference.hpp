// align as a specification: sequential, host only, shares nothing with the kernels or the CPU code.
#pragma once

#include <cstdint>
#include <vector>

namespace tokenyard::align {

struct ReferenceInput {
  const std::vector<int64_t>& ids;  // [num_tokens, top_k], contiguous
  int64_t first_id;                 // of expert 0
  int32_t num_experts;
  int32_t block_size;
  const std::vector<int32_t>& expert_map;  // [num_experts], or empty
  int32_t num_local_experts;               // equals num_experts without a map
  int64_t capacity;
};

struct ReferenceOutput {
  std::vector<int32_t> sorted_pair_ids;  // [capacity]
  std::vector<int32_t> block_expert;     // [ceil(capacity / block_size)]
  std::vector<int32_t> block_rows;       // likewise
  std::vector<int32_t> counts;           // [num_local_experts]
  std::vector<int32_t> offsets;          // [num_local_experts + 1]
  std::vector<int32_t> inverse;          // [num_tokens * top_k]
  int32_t num_padded;
  int32_t num_dropped;
};

ReferenceOutput reference(const ReferenceInput& input);

}  // namespace tokenyard::align
