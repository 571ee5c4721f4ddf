// Median and spread of a measurement.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tokenyard::cli {

struct Quantiles {
  double p20, p50, p80;
};

inline Quantiles quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<size_t>(std::lround(share * static_cast<double>(samples.size() - 1)))];
  };
  return {at(0.2), at(0.5), at(0.8)};
}

}  // namespace tokenyard::cli
