// A row of logits into the registers of its lanes, as selection values.
#pragma once

#include <cstdint>

#include "gate/router.hpp"
#include "gate/row_chunk.hpp"
#include "gate/row_shape.hpp"
#include "gate/selection.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Of the experts of one lane.
template <class Shape>
struct RowValues {
  float item[Shape::kItems];
};

template <class Shape>
class RowLoader {
 public:
  using Logit = typename Shape::Logit;
  using Values = RowValues<Shape>;

  TY_DEVICE RowLoader(const Router<Logit>& router, const Logit* row, int lane)
      : router_(router), row_(row), lane_(lane) {}

  // A chunk as it is; -inf where there is none.
  using Logits = Chunk<Logit, Shape::kChunk>;
  TY_DEVICE Logits load_logits(int c) const {
    Logits logits;
    if (is_there(c)) {
      logits.load(row_ + Shape::first_of_chunk(lane_, c));
    } else {
      logits.fill(kMinusInfinity<Logit>);
    }
    return logits;
  }

  // What is not there is -inf. NaN, and what selection_value() makes of infinities, is left.
  template <class Thread>
  TY_DEVICE Values load(Thread& gpu) const {
    Logits logits[Shape::kChunks];
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) logits[c] = load_logits(c);
    if constexpr (Shape::kBiased && Shape::kChunks >= 4) {
      // Or the compiler puts the last load off until the first have come, to have room for the bias.
      logits[0].await(logits[Shape::kChunks - 1], router_.zero());
    }
    Values values;
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      Bias bias;
      if constexpr (Shape::kBiased) bias = load_bias(c);
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) {
        float& value = values.item[c * Shape::kChunk + i];
        value = logits[c][i];
        if constexpr (Shape::kBiased) {
          value = selection_value<Shape::kSelection, Logit>(gpu, value, bias[i]);
          if (!is_there(c)) value = -kInfinity;
        }
      }
    }
    return values;
  }

  // What is NaN put right: -inf, or what safe_selection_value() says.
  static TY_DEVICE_SELDOM Values without_nan(const Router<Logit>& router, const Logit* row, int lane,
                                             Values values) {
    const RowLoader loader(router, row, lane);
    float highest = -kInfinity;
#pragma unroll 1
    for (int c = 0; c < Shape::kChunks; ++c) {
      const Logits logits = loader.load_logits(c);
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) highest = port::max(highest, port::abs(logits[i]));
    }
    constexpr float kLarge = 0x1p126f;  // of the numbers below none has a score that is NaN
    if (Shape::kSelection == Selection::kSigmoid && highest >= kLarge) {
#pragma unroll
      for (int c = 0; c < Shape::kChunks; ++c) {
        const Logits logits = loader.load_logits(c);
        const Bias bias = loader.load_bias(c);
#pragma unroll
        for (int i = 0; i < Shape::kChunk; ++i) {
          float& value = values.item[c * Shape::kChunk + i];
          const float x = logits[i];
          if (value != value && x == x) value = (x > 0 ? 1.0f : 0.0f) + bias[i];
        }
      }
    }
#pragma unroll
    for (float& value : values.item) value = port::max(value, -kInfinity);
    return values;
  }

  TY_DEVICE float logit_of(int32_t expert) const { return port::to_float(row_[expert]); }

  // Of one expert, as load() takes it.
  template <class Thread>
  TY_DEVICE float value_of(Thread& gpu, float logit, int32_t expert) const {
    if constexpr (!Shape::kBiased) return logit;
    return selection_value<Shape::kSelection, Logit>(gpu, logit, router_.bias[expert]);
  }

  // Not NaN but for a logit.
  template <class Thread>
  TY_DEVICE float safe_value_of(Thread& gpu, int32_t expert) const {
    const float x = logit_of(expert);
    if constexpr (!Shape::kBiased) return x;
    return safe_selection_value<Shape::kSelection, Logit>(gpu, x, router_.bias[expert]);
  }

 private:
  using Bias = Chunk<float, Shape::kChunk>;

  TY_DEVICE bool is_there(int c) const {
    return Shape::kIsFull || Shape::first_of_chunk(lane_, c) < router_.num_experts;
  }

  TY_DEVICE Bias load_bias(int c) const {
    Bias bias;
    if (is_there(c)) {
      bias.load(router_.bias + Shape::first_of_chunk(lane_, c));
    } else {
      bias.fill(0);
    }
    return bias;
  }

  const Router<Logit>& router_;
  const Logit* const row_;
  const int lane_;
};

}  // namespace tokenyard::gate
