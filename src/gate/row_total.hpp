// The sum that a softmax over a whole row divides by.
#pragma once

#include "gate/quick_score.hpp"
#include "port/collectives.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Of quick_term(), neighbours first.
template <class Shape, class Thread>
TY_DEVICE float row_total(Thread& gpu, const float (&value)[Shape::kItems], float highest) {
  float of_chunk[Shape::kChunks];
#pragma unroll
  for (int c = 0; c < Shape::kChunks; ++c) {
    float term[Shape::kChunk];
#pragma unroll
    for (int i = 0; i < Shape::kChunk; ++i) {
      term[i] = quick_term(gpu, value[c * Shape::kChunk + i], highest);
    }
    of_chunk[c] = port::tree_sum<Shape::kChunk>(term);
  }
  if constexpr (Shape::kGrouped) {
    return port::lanes_tree_sum<Shape::kLanes>(gpu, port::tree_sum<Shape::kChunks>(of_chunk));
  } else {
    return port::lanes_tree_sum<Shape::kLanes>(gpu, of_chunk);
  }
}

}  // namespace tokenyard::gate
