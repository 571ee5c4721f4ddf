#include "align/reference.hpp"

#include <cstddef>

namespace tokenyard::align {
namespace {

constexpr int32_t kDropped = -1;

// The expert that a pair goes to, as the outputs number them.
int32_t local_expert(const ReferenceInput& input, int64_t id) {
  if (id < input.first_id || id >= input.first_id + input.num_experts) return kDropped;
  if (input.expert_map.empty()) return static_cast<int32_t>(id - input.first_id);
  const int32_t local = input.expert_map[static_cast<size_t>(id)];
  return local >= 0 && local < input.num_local_experts ? local : kDropped;
}

}  // namespace

ReferenceOutput reference(const ReferenceInput& input) {
  const size_t experts = static_cast<size_t>(input.num_local_experts);
  const size_t capacity = static_cast<size_t>(input.capacity);
  const size_t block = static_cast<size_t>(input.block_size);
  const size_t blocks = (capacity + block - 1) / block;
  const int32_t padding = static_cast<int32_t>(input.ids.size());  // T * K, the first index that is no pair

  std::vector<std::vector<int32_t>> pairs_of(experts);
  ReferenceOutput out;
  out.num_dropped = 0;
  for (size_t pair = 0; pair < input.ids.size(); ++pair) {
    const int32_t expert = local_expert(input, input.ids[pair]);
    if (expert == kDropped) {
      ++out.num_dropped;
    } else {
      pairs_of[static_cast<size_t>(expert)].push_back(static_cast<int32_t>(pair));
    }
  }

  out.sorted_pair_ids.assign(capacity, padding);
  out.block_expert.assign(blocks, -1);
  out.block_rows.assign(blocks, 0);
  out.inverse.assign(input.ids.size(), -1);
  out.offsets.push_back(0);
  size_t slot = 0;
  for (size_t expert = 0; expert < experts; ++expert) {
    for (const int32_t pair : pairs_of[expert]) {
      out.sorted_pair_ids[slot] = pair;
      out.inverse[static_cast<size_t>(pair)] = static_cast<int32_t>(slot);
      out.block_expert[slot / block] = static_cast<int32_t>(input.first_id + static_cast<int64_t>(expert));
      ++out.block_rows[slot / block];
      ++slot;
    }
    slot = (slot + block - 1) / block * block;  // the next expert begins a new block
    out.counts.push_back(static_cast<int32_t>(pairs_of[expert].size()));
    out.offsets.push_back(static_cast<int32_t>(slot));
  }
  out.num_padded = static_cast<int32_t>(slot);
  return out;
}

}  // namespace tokenyard::align
