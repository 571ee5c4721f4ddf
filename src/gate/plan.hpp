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
  int32_t shape;  // its place in the device's list; kAnyShape or kNoShape
  int32_t lanes;  // of a token
  enum class Why { kAsked, kManyTokens, kFewTokens, kShape } why;
  int64_t tokens;  // kManyTokens: this many and more; kFewTokens: fewer than another kernel is for

  static constexpr int32_t kAnyShape = -1;  // selection values in shared memory, a warp a token
  static constexpr int32_t kNoShape = -2;   // none with so many lanes
};

// The kernels of a device.
std::span<const tuning::GateShape> shapes_for(const DeviceProperties& device);

Plan plan(const DeviceProperties& device, const Problem& problem);

// The plan in words.
std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem);

}  // namespace tokenyard::gate
