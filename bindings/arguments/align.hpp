// From tensors to ty_align_args.
#pragma once

#include <cstdint>
#include <optional>

#include "tokenyard/tokenyard.hpp"
#include "view.hpp"

namespace tokenyard::binding {

struct AlignInputs {
  View topk_ids;
  int64_t num_experts;
  int64_t block_size;
  std::optional<View> expert_map;
  std::optional<int64_t> num_local_experts;
  int64_t first_id = 0;
};

// Three are written always, the others if they are there.
struct AlignOutputs {
  View sorted_pair_ids, block_expert, num_padded;
  std::optional<View> counts = {}, offsets = {}, inverse = {}, block_rows = {}, num_dropped = {};
};

ty_align_args arguments(const AlignInputs& inputs);

// Checks them and has them written; the capacity is what there is room for.
void write_to(ty_align_args& args, const AlignOutputs& outputs, ty_device device);

// Those that pairs are sorted by: local ones if there is a map.
int32_t experts(const ty_align_args& args);

}  // namespace tokenyard::binding
