#include "harness/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "align/contract.hpp"
#include "harness/random.hpp"
#include "harness/urn.hpp"

namespace tokenyard::harness {
namespace {

constexpr double kZipfExponent = 1.2;
constexpr int64_t kInvalidOneIn = 10;

using Row = int64_t*;  // one token's ids

bool repeats_experts(const AlignShape& shape) { return shape.duplicates || shape.top_k > shape.experts; }

void draw_uniform(const AlignShape& shape, Random& random, std::vector<int64_t>& ids) {
  if (repeats_experts(shape)) {
    for (int64_t& id : ids) id = random.below(shape.experts);
    return;
  }
  // The order that one token leaves behind is as good a start as any for the next.
  std::vector<int32_t> experts = random.permutation(static_cast<size_t>(shape.experts));
  for (Row row = ids.data(); row != ids.data() + ids.size(); row += shape.top_k) {
    random.shuffle_front(experts, static_cast<size_t>(shape.top_k));
    std::copy_n(experts.begin(), shape.top_k, row);
  }
}

// Weights in units of 2^-24, so that nothing hangs on the last bits of a platform's pow().
std::vector<int64_t> zipf_weights(int32_t experts, Random& random) {
  const std::vector<int32_t> expert_of_rank = random.permutation(static_cast<size_t>(experts));
  std::vector<int64_t> weights(expert_of_rank.size());
  for (size_t rank = 0; rank < weights.size(); ++rank) {
    const double weight = std::pow(static_cast<double>(rank + 1), -kZipfExponent);
    weights[static_cast<size_t>(expert_of_rank[rank])] = std::llround(std::ldexp(weight, 24));
  }
  return weights;
}

void draw_zipf(const AlignShape& shape, Random& random, std::vector<int64_t>& ids) {
  Urn urn(zipf_weights(shape.experts, random));
  if (repeats_experts(shape)) {
    for (int64_t& id : ids) id = urn.at(random.below(urn.total()));
    return;
  }
  for (Row row = ids.data(); row != ids.data() + ids.size(); row += shape.top_k) {
    for (int32_t k = 0; k < shape.top_k; ++k) {
      row[k] = urn.at(random.below(urn.total()));
      urn.take(static_cast<int32_t>(row[k]));
    }
    for (int32_t k = 0; k < shape.top_k; ++k) urn.put_back(static_cast<int32_t>(row[k]));
  }
}

void draw_hot(const AlignShape& shape, Random& random, std::vector<int64_t>& ids) {
  draw_uniform(shape, random, ids);
  const int64_t hot = random.below(shape.experts);
  for (Row row = ids.data(); row != ids.data() + ids.size(); row += shape.top_k) {
    if (std::find(row, row + shape.top_k, hot) == row + shape.top_k) row[random.below(shape.top_k)] = hot;
  }
}

void spoil_some(const AlignShape& shape, Random& random, std::vector<int64_t>& ids) {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int32_t>::max();
  const int64_t first = shape.first_id, end = first + shape.experts;
  std::vector<int64_t> invalid{first - 1, first - 2, kLow, end, end + 1, kHigh};
  if (shape.int64_ids) {  // cut to 32 bits, the first three are experts
    constexpr int64_t kBeyond = int64_t{1} << 32;
    invalid.insert(invalid.end(), {kBeyond + first, kBeyond + end - 1, first - kBeyond,
                                   std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()});
  }
  for (int64_t& id : ids) {
    if (random.one_in(kInvalidOneIn)) id = random.any_of(invalid);
  }
}

// Local experts in a random order on random global ones, the rest remote. With duplicates, replicas: several
// global experts on one local; with invalid ids, entries that are no local expert.
std::vector<int32_t> draw_map(const AlignShape& shape, Random& random) {
  const std::vector<int32_t> global = random.permutation(static_cast<size_t>(shape.experts));
  const std::vector<int32_t> local = random.permutation(static_cast<size_t>(shape.local_experts));
  std::vector<int32_t> map(global.size(), -1);
  for (size_t i = 0; i < std::min(global.size(), local.size()); ++i)
    map[static_cast<size_t>(global[i])] = local[i];
  const std::vector<int32_t> invalid{-2, std::numeric_limits<int32_t>::min(), shape.local_experts,
                                     shape.local_experts + 1, std::numeric_limits<int32_t>::max()};
  for (int32_t& entry : map) {
    if (shape.duplicates && random.one_in(4)) entry = random.any_of(local);
    if (shape.invalid_ids && random.one_in(kInvalidOneIn)) entry = random.any_of(invalid);
  }
  return map;
}

int32_t draw_experts(Random& random) {
  static const std::vector<int32_t> usual{1,   2,   8,   60,  64,  96,   128,  160,
                                          256, 257, 384, 512, 768, 1024, 1025, align::kMaxExperts};
  if (random.one_in(2)) return random.any_of(usual);
  return static_cast<int32_t>(
      random.between(1, random.any_of(std::vector<int32_t>{16, 300, align::kMaxExperts})));
}

int32_t draw_top_k(Random& random, int32_t experts, int64_t max_pairs) {
  static const std::vector<int32_t> usual{1, 2, 4, 6, 8, 8, 9, 10};
  const int64_t top_k = random.one_in(16) ? experts : std::min(random.any_of(usual), experts);
  return static_cast<int32_t>(std::clamp<int64_t>(top_k, 1, max_pairs));
}

// Every order of magnitude is equally likely, and now and then it is a neighbour of a power of two.
int64_t draw_pairs(Random& random, int64_t max_pairs) {
  int bits = 0;
  while (bits < 31 && int64_t{1} << (bits + 1) <= max_pairs) ++bits;
  const int64_t power = int64_t{1} << random.between(0, bits);
  const int64_t pairs = random.one_in(4) ? power + random.between(-1, 1) : random.between(power, 2 * power);
  return std::clamp<int64_t>(pairs, 0, max_pairs);
}

}  // namespace

std::string AlignShape::command() const {
  static constexpr const char* kNames[] = {"uniform", "zipf", "hot", "one"};
  std::string command = fmt::format("tokenyard verify --tokens {} --top-k {} --experts {} --block {}", tokens,
                                    top_k, experts, block);
  if (int64_ids) command += " --int64";
  if (row_stride != 0) command += fmt::format(" --row-stride {}", row_stride);
  if (local_experts != 0) command += fmt::format(" --local-experts {}", local_experts);
  if (first_id != 0) command += fmt::format(" --first-id {}", first_id);
  if (extra_capacity != 0) command += fmt::format(" --extra-capacity {}", extra_capacity);
  if (distribution != Distribution::kUniform) {
    command += fmt::format(" --distribution {}", kNames[static_cast<size_t>(distribution)]);
  }
  if (invalid_ids) command += " --invalid-ids";
  if (duplicates) command += " --duplicates";
  return command + fmt::format(" --seed {}", seed);
}

AlignProblem from_ids(const AlignShape& shape, std::vector<int64_t> ids, std::vector<int32_t> expert_map) {
  AlignProblem problem{shape, std::move(ids), std::move(expert_map), 0};
  const int32_t experts = problem.num_local_experts();
  problem.capacity =
      std::max(align::capacity(problem.num_pairs(), experts, shape.block) + shape.extra_capacity,
               align::min_capacity(problem.num_pairs(), experts, shape.block));
  return problem;
}

AlignProblem draw(const AlignShape& shape) {
  Random random(shape.seed);
  std::vector<int64_t> ids(static_cast<size_t>(shape.tokens * shape.top_k));
  switch (shape.distribution) {
    case Distribution::kUniform:
      draw_uniform(shape, random, ids);
      break;
    case Distribution::kZipf:
      draw_zipf(shape, random, ids);
      break;
    case Distribution::kHot:
      draw_hot(shape, random, ids);
      break;
    case Distribution::kOneExpert:
      std::fill(ids.begin(), ids.end(), random.below(shape.experts));
      break;
  }
  for (int64_t& id : ids) id += shape.first_id;
  if (shape.invalid_ids) spoil_some(shape, random, ids);
  std::vector<int32_t> map;
  if (shape.local_experts > 0) map = draw_map(shape, random);
  return from_ids(shape, std::move(ids), std::move(map));
}

AlignShape draw_shape(uint64_t seed, int64_t max_pairs) {
  static const std::vector<int32_t> blocks{1, 2, 7, 16, 17, 32, 64, 64, 100, 128, 128, 256};
  static const std::vector<Distribution> distributions{Distribution::kUniform, Distribution::kZipf,
                                                       Distribution::kHot, Distribution::kOneExpert};
  Random random(seed);
  AlignShape shape;
  shape.seed = seed;
  shape.experts = draw_experts(random);
  shape.top_k = draw_top_k(random, shape.experts, max_pairs);
  shape.tokens = random.one_in(32) ? 0 : draw_pairs(random, max_pairs) / shape.top_k;
  shape.block = random.any_of(blocks);
  shape.int64_ids = random.one_in(3);
  if (random.one_in(4)) shape.row_stride = shape.top_k + random.between(1, 20);
  if (random.one_in(4)) shape.local_experts = static_cast<int32_t>(random.between(1, shape.experts));
  if (random.one_in(3)) shape.extra_capacity = random.between(-4096, 4096);
  shape.distribution = random.any_of(distributions);
  shape.invalid_ids = random.one_in(4);
  shape.duplicates = random.one_in(4);
  if (shape.local_experts == 0 && random.one_in(4)) {
    shape.first_id = random.one_in(2) ? -1 : static_cast<int32_t>(random.between(-5000, 5000));
  }
  return shape;
}

}  // namespace tokenyard::harness
