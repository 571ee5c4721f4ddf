// The runtime of TY_CPU: host memory, one device, calls that are done when they return.
#pragma once

#include "runtime/runtime.hpp"

namespace tokenyard {

Runtime& cpu_runtime();

}  // namespace tokenyard
