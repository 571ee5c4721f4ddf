// The runtime of the SIMT executor: host memory that starts as poison, one device with warps of 32 or 64.
#pragma once

#include "runtime/runtime.hpp"

namespace tokenyard::port::host {

template <int WarpSize>
Runtime& runtime();

}  // namespace tokenyard::port::host
