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

// `count` rows of a pool from row `first` on; behind its last comes its first.
template <class T>
std::vector<T> rows_of(const std::vector<T>& pool, int64_t first, int64_t count, int32_t columns) {
  std::vector<T> rows(static_cast<size_t>(count * columns));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = pool[(static_cast<size_t>(first * columns) + i) % pool.size()];
  }
  return rows;
}

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
    const int64_t first = i * pool_shape.tokens / count;
    inputs.push_back(harness::from_ids(shape, rows_of(pool, first, shape.tokens, shape.top_k)));
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
    input.logits = rows_of(pool.logits, i * pool_shape.tokens / count, shape.tokens, shape.experts);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<harness::LossProblem> rotated_inputs(const harness::TrainingShape& shape, int64_t count) {
  harness::TrainingShape pool_shape = shape;
  const int64_t tokens = shape.gate.tokens;
  pool_shape.gate.tokens = std::min(tokens * count, kLargestPool);
  const harness::BackwardProblem pool = harness::draw_backward(pool_shape.gate);
  std::vector<harness::LossProblem> inputs;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = i * pool_shape.gate.tokens / count;
    harness::BackwardProblem chosen{pool.forward, {}, {}};
    chosen.forward.shape = shape.gate;
    chosen.forward.logits = rows_of(pool.forward.logits, first, tokens, shape.gate.experts);
    chosen.ids = rows_of(pool.ids, first, tokens, pool.forward.columns());
    chosen.weights_grad = rows_of(pool.weights_grad, first, tokens, pool.forward.columns());
    inputs.push_back(harness::with_losses(shape, std::move(chosen)));
  }
  return inputs;
}

}  // namespace tokenyard::cli
