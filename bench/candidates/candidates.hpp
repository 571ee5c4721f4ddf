// Launches of our own kernels that were or could be in tuning/align.hpp, for `tokenyard bench align
// --candidates` to measure side by side. The lists there are made from what it finds.
#pragma once

#include <vector>

#include "baselines/baselines.hpp"

namespace tokenyard::candidates {

std::vector<baselines::Baseline> align();

}  // namespace tokenyard::candidates
