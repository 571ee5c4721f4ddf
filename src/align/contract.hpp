// align's contract on the host: sizes, limits and the checks that every call passes.
#pragma once

#include <cstdint>

#include "runtime/check.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::align {

inline constexpr int kMaxExperts = 4096;

// A checked call: what every implementation gets. All pointers are of one device.
struct Problem {
  // input
  const void* topk_ids;
  bool ids_are_int64;
  int64_t num_tokens;
  int64_t row_stride;
  int32_t top_k;
  int32_t first_id;           // of expert 0
  int32_t num_experts;        // ids are below first_id + this
  int32_t num_local_experts;  // equals num_experts without a map
  int32_t block_size;
  const int32_t* expert_map;  // or nullptr
  // output
  int64_t capacity;
  int32_t* sorted_pair_ids;
  int32_t* block_expert;
  int32_t* num_padded;
  int32_t* counts;  // this and below: nullptr if not wanted
  int32_t* offsets;
  int32_t* inverse;
  int32_t* block_rows;
  int32_t* num_dropped;
  ty_align_path path;
  bool linked = false;  // to the launch before it in the stream
  bool once = false;    // the call prepares its workspace itself: see ty_align_once()

  int64_t num_pairs() const { return num_tokens * top_k; }
  int64_t num_blocks() const { return (capacity + block_size - 1) / block_size; }
};

// See ty_align_capacity() and ty_align_min_capacity().
int64_t capacity(int64_t num_pairs, int32_t experts, int32_t block_size);
int64_t min_capacity(int64_t num_pairs, int32_t experts, int32_t block_size);

// Checks `args` (of any version of the struct) and fills `problem`, or says what is wrong with which
// argument.
Status check(const ty_align_args* args, Pointers pointers, Problem& problem);

// The two halves of it, for who fills some fields in between: the struct in this version, then its values.
Status read(const ty_align_args* given, ty_align_args& args);
Status check(const ty_align_args& args, Pointers pointers, Problem& problem);

}  // namespace tokenyard::align
