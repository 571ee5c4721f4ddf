// Problems for align, drawn from a seed: what the tests, `tokenyard verify` and the benchmarks run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

enum class Distribution {
  kUniform,    // top_k distinct experts, each equally likely
  kZipf,       // distinct, drawn one by one: expert of rank r with weight r^-1.2 (ranks shuffled)
  kHot,        // uniform, but every token names one certain expert
  kOneExpert,  // every pair names the same expert
};

struct AlignShape {
  int64_t tokens = 0;
  int32_t top_k = 1;
  int32_t experts = 1;
  int32_t block = 128;
  bool int64_ids = false;
  int64_t row_stride = 0;      // 0: contiguous
  int32_t local_experts = 0;   // > 0: with an expert_map
  int32_t first_id = 0;        // of expert 0; without a map
  int64_t extra_capacity = 0;  // slots beyond ty_align_capacity(); may be negative, but the minimum stays
  Distribution distribution = Distribution::kUniform;
  bool invalid_ids = false;  // a tenth of the ids -1, below -1, E or beyond
  bool duplicates = false;   // experts drawn with repetition inside a token, as they are where K > E
  uint64_t seed = 0;

  std::string command() const;  // "tokenyard verify --tokens … --seed …", which runs it again
};

struct AlignProblem {
  AlignShape shape;
  std::vector<int64_t> ids;         // [tokens, top_k], whatever the device's type
  std::vector<int32_t> expert_map;  // [experts], empty without a map
  int64_t capacity = 0;

  int64_t num_pairs() const { return shape.tokens * shape.top_k; }
  int32_t num_local_experts() const { return expert_map.empty() ? shape.experts : shape.local_experts; }
};

AlignProblem draw(const AlignShape& shape);

// A random shape for verify: every limit of the contract is reached now and then.
AlignShape draw_shape(uint64_t seed, int64_t max_pairs);

// Problem from given ids (a file, a test case).
AlignProblem from_ids(const AlignShape& shape, std::vector<int64_t> ids,
                      std::vector<int32_t> expert_map = {});

}  // namespace tokenyard::harness
