// Sorting networks over a lane's own numbers, the highest first.
#pragma once

#include "port/floats.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

template <class T>
TY_DEVICE void put_higher_first(T& a, T& b) {
  const T lower = port::min_of(a, b);
  a = port::max_of(a, b);
  b = lower;
}

// Not of NaN.
TY_DEVICE void put_higher_first(float& a, float& b) {
  const float lower = port::min(a, b);
  a = port::max(a, b);
  b = lower;
}

// Of every kStep-th of kCount numbers, which are sorted in two halves.
template <int kCount, int kStep, class T>
TY_DEVICE void merge_halves(T* item) {
  if constexpr (2 * kStep < kCount) {
    merge_halves<kCount, 2 * kStep>(item);
    merge_halves<kCount, 2 * kStep>(item + kStep);
#pragma unroll
    for (int i = kStep; i + kStep < kCount; i += 2 * kStep) put_higher_first(item[i], item[i + kStep]);
  } else {
    put_higher_first(item[0], item[kStep]);
  }
}

// Batcher's odd-even merge sort. kCount: a power of two.
template <int kCount, class T>
TY_DEVICE void sort(T* item) {
  if constexpr (kCount > 1) {
    sort<kCount / 2>(item);
    sort<kCount / 2>(item + kCount / 2);
    merge_halves<kCount, 1>(item);
  }
}

// The two highest to the front; of the others some are lost.
template <int kCount, class T>
TY_DEVICE void put_two_highest_first(T* item) {
  if constexpr (kCount == 2) {
    put_higher_first(item[0], item[1]);
  } else {
    constexpr int kHalf = kCount / 2;
    put_two_highest_first<kHalf>(item);
    put_two_highest_first<kHalf>(item + kHalf);
    const T second = port::max_of(item[1], item[kHalf + 1]);
    put_higher_first(item[0], item[kHalf]);
    item[1] = port::max_of(second, item[kHalf]);
  }
}

// Of numbers that rise and then fall, or the other way round.
template <int kCount, class T>
TY_DEVICE void sort_bitonic(T* item) {
#pragma unroll
  for (int distance = kCount / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((i & distance) == 0) put_higher_first(item[i], item[i + distance]);
    }
  }
}

}  // namespace tokenyard::gate
