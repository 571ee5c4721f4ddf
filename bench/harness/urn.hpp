// An urn of experts with integer weights, as a Fenwick tree: drawing, taking out and putting back take
// log2(E) steps each, and the sums are exact.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokenyard::harness {

class Urn {
 public:
  explicit Urn(const std::vector<int64_t>& weights)
      : weights_(weights), sums_(std::bit_ceil(weights.size() + 1), 0) {
    for (size_t expert = 0; expert < weights_.size(); ++expert) put_back(static_cast<int32_t>(expert));
  }

  int64_t total() const { return total_; }

  // The expert on whose stretch of [0, total()) the point falls.
  int32_t at(int64_t point) const {
    size_t below = 0;
    for (size_t step = sums_.size() / 2; step > 0; step /= 2) {
      if (sums_[below + step] <= point) {
        below += step;
        point -= sums_[below];
      }
    }
    return static_cast<int32_t>(below);
  }

  void take(int32_t expert) { add(expert, -weights_[static_cast<size_t>(expert)]); }
  void put_back(int32_t expert) { add(expert, weights_[static_cast<size_t>(expert)]); }

 private:
  void add(int32_t expert, int64_t weight) {
    total_ += weight;
    for (size_t i = static_cast<size_t>(expert) + 1; i < sums_.size(); i += i & -i) sums_[i] += weight;
  }

  std::vector<int64_t> weights_;
  std::vector<int64_t> sums_;  // sums_[i] covers the lowest-set-bit-of-i experts up to i
  int64_t total_ = 0;
};

}  // namespace tokenyard::harness
