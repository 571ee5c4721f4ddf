// Draws that come out alike on every platform: the standard fixes std::mt19937_64's numbers, but not what
// its distributions make of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace tokenyard::harness {

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  // From [0, bound), 1 <= bound <= 2^32; equally likely to within 2^-32.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>((bits_() >> 32) * static_cast<uint64_t>(bound) >> 32);
  }

  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }

  bool one_in(int64_t n) { return below(n) == 0; }

  template <class T>
  const T& any_of(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }

  // Brings `count` of the values to the front, each selection and order equally likely.
  template <class T>
  void shuffle_front(std::vector<T>& values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      std::swap(values[i], values[i + static_cast<size_t>(below(static_cast<int64_t>(values.size() - i)))]);
    }
  }

  // 0, 1, ..., size - 1 in a random order.
  std::vector<int32_t> permutation(size_t size) {
    std::vector<int32_t> values(size);
    std::iota(values.begin(), values.end(), 0);
    shuffle_front(values, size);
    return values;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace tokenyard::harness
