#pragma once

#include "runtime/runtime.hpp"

namespace tokenyard::port::cuda {

Runtime& runtime();

}  // namespace tokenyard::port::cuda
