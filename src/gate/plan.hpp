// Which kernel a problem takes on a device, from the lists of tuning/gate.hpp, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "gate/contract.hpp"
#include "runtime/runtime.hpp"
#include "tuning/gate.hpp"

namespace tokenyard::gate {

struct Plan {
  int32_t lanes;  // of a token
  int32_t items;  // experts of a lane; 0: in shared memory, a warp a token
  enum class Why { kAsked, kManyTokens, kFewTokens, kShape } why;
  int64_t tokens;  // kManyTokens: this many and more; kFewTokens: fewer than another kernel is for
};

// The kernels of a device.
std::span<const tuning::GateShape> shapes_for(const DeviceProperties& device);

Plan plan(const DeviceProperties& device, const Problem& problem);

// The plan in words.
std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem);

}  // namespace tokenyard::gate
