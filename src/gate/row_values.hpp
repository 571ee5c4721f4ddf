// A row of logits into the registers of its lanes, as selection values.
#pragma once

#include <cstdint>

#include "gate/router.hpp"
#include "gate/row_shape.hpp"
#include "gate/selection.hpp"
#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

template <class Shape>
class RowLoader {
 public:
  using Logit = typename Shape::Logit;

  TY_DEVICE RowLoader(const Router<Logit>& router, const Logit* row, int lane)
      : router_(router), row_(row), lane_(lane) {}

  // What is not there is -inf. A bias that is not NaN leaves NaN where settle() is needed, and nowhere else.
  template <class Thread>
  TY_DEVICE void load(Thread& gpu, float (&value)[Shape::kItems]) const {
    Chunk<Logit> logits[Shape::kChunks];
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) load_chunk(row_, kMinusInfinity<Logit>, c, logits[c]);
#pragma unroll
    for (int c = 0; c < Shape::kChunks; ++c) {
      Chunk<float> bias;
      if constexpr (Shape::kBiased) load_bias(c, bias);
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) {
        const float x = port::to_float(logits[c].item[i]);
        float& item = value[c * Shape::kChunk + i];
        item = x;
        if constexpr (Shape::kBiased) {
          item = selection_value<Shape::kSelection, Logit>(gpu, x, bias.item[i]);
          if (!Shape::kIsFull && Shape::expert_of(lane_, c * Shape::kChunk + i) >= router_.num_experts) {
            item = -kInfinity;
          }
        }
      }
    }
  }

  // Puts right what is NaN.
  TY_DEVICE void settle(float (&value)[Shape::kItems]) const {
#pragma unroll
    for (int i = 0; i < Shape::kItems; ++i) {
      if (value[i] == value[i]) continue;
      const int32_t expert = Shape::expert_of(lane_, i);
      value[i] = settled<Shape::kSelection>(value[i], port::to_float(row_[expert]),
                                            Shape::kBiased ? router_.bias_of(expert) : 0.0f);
    }
  }

  // Of one expert, settled.
  template <class Thread>
  TY_DEVICE float value_of(Thread& gpu, int32_t expert) const {
    const float x = port::to_float(row_[expert]);
    if constexpr (!Shape::kBiased) return x;
    const float bias = router_.bias_of(expert);
    return settled<Shape::kSelection>(selection_value<Shape::kSelection, Logit>(gpu, x, bias), x, bias);
  }

 private:
  template <class T>
  struct alignas(Shape::kChunk * sizeof(T) < 16 ? Shape::kChunk * sizeof(T) : 16) Chunk {
    T item[Shape::kChunk];
  };

  TY_DEVICE bool is_there(int c) const {
    return Shape::kIsFull || Shape::first_of_chunk(lane_, c) < router_.num_experts;
  }

  template <class T>
  TY_DEVICE void load_chunk(const T* row, T otherwise, int c, Chunk<T>& chunk) const {
    const int32_t first = Shape::first_of_chunk(lane_, c);
    if (!Shape::kWide || router_.whole_packs) {
      if (is_there(c)) {
        chunk = *reinterpret_cast<const Chunk<T>*>(row + first);
      } else {
#pragma unroll
        for (T& item : chunk.item) item = otherwise;
      }
    } else {
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) {
        chunk.item[i] = first + i < router_.num_experts ? row[first + i] : otherwise;
      }
    }
  }

  // Wide lanes take it as it lies, in the logits' type too.
  TY_DEVICE void load_bias(int c, Chunk<float>& bias) const {
    if (!Shape::kWide || router_.bias_is_float32) {
      load_chunk(static_cast<const float*>(router_.bias), 0.0f, c, bias);
    } else {
      Chunk<Logit> narrow;
      load_chunk(static_cast<const Logit*>(router_.bias), Logit{}, c, narrow);
#pragma unroll
      for (int i = 0; i < Shape::kChunk; ++i) bias.item[i] = port::to_float(narrow.item[i]);
    }
  }

  const Router<Logit>& router_;
  const Logit* const row_;
  const int lane_;
};

}  // namespace tokenyard::gate
