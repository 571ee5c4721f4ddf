#pragma once

#include "runtime/runtime.hpp"

namespace tokenyard::port::hip {

Runtime& runtime();

}  // namespace tokenyard::port::hip
