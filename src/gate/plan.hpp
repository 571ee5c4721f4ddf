// Which kernel a problem takes on a device, from the rows of tuning/gate.hpp, and why.
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
  enum class Why { kAsked, kRow, kShape } why;
  int64_t row_tokens;  // kRow: up to how many tokens the row goes
};

// The rows and the kernels that fit a device.
std::span<const tuning::GateRow> rows_for(const DeviceProperties& device);
std::span<const tuning::GateShape> shapes_for(const DeviceProperties& device);

Plan plan(const DeviceProperties& device, const Problem& problem);

// The plan in words.
std::string describe(const Plan& plan, const DeviceProperties& device, const Problem& problem);

}  // namespace tokenyard::gate
