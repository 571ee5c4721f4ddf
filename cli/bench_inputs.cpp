#include "bench_inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "problem_options.hpp"

namespace tokenyard::cli {

using harness::AlignProblem;
using harness::AlignShape;

namespace {

constexpr int64_t kLargestPool = 20'480;  // tokens

}  // namespace

Routing::Routing(const std::string& loads_file)
    : loads_name_(std::filesystem::path(loads_file).stem()), loads_(harness::read_loads(loads_file)) {}

const std::string& Routing::name() const {
  return loads_name_.empty() ? word_of(distribution_choices(), distribution_) : loads_name_;
}

AlignShape Routing::with(AlignShape shape) const {
  shape.distribution = distribution_;
  if (loads_name_.empty()) return shape;
  shape.top_k = loads_.top_k;
  shape.experts = loads_.experts;
  return shape;
}

AlignProblem Routing::draw(const AlignShape& shape) const {
  return loads_name_.empty() ? harness::draw(shape) : harness::draw_to_loads(shape, loads_);
}

std::vector<AlignProblem> rotated_inputs(const Routing& routing, const AlignShape& shape, int64_t count) {
  AlignShape pool_shape = shape;
  pool_shape.tokens = std::max(shape.tokens, std::min(shape.tokens * count, kLargestPool));
  const std::vector<int64_t> pool = routing.draw(pool_shape).ids;
  std::vector<AlignProblem> inputs;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * pool_shape.tokens / count * shape.top_k;
    std::vector<int64_t> ids(static_cast<size_t>(shape.tokens) * shape.top_k);
    for (size_t j = 0; j < ids.size(); ++j) ids[j] = pool[(first + j) % pool.size()];
    inputs.push_back(harness::from_ids(shape, std::move(ids)));
  }
  return inputs;
}

std::vector<harness::GateProblem> rotated_inputs(const harness::GateShape& shape, int64_t count) {
  harness::GateShape pool_shape = shape;
  pool_shape.tokens = std::min(shape.tokens * count, kLargestPool);
  const harness::GateProblem pool = harness::draw(pool_shape);
  std::vector<harness::GateProblem> inputs;
  for (int64_t i = 0; i < count; ++i) {
    harness::GateProblem input = pool;
    input.shape = shape;
    input.logits.resize(static_cast<size_t>(shape.tokens * shape.experts));
    const auto first = static_cast<size_t>(i * pool_shape.tokens / count * shape.experts);
    for (size_t j = 0; j < input.logits.size(); ++j) {
      input.logits[j] = pool.logits[(first + j) % pool.logits.size()];
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace tokenyard::cli
