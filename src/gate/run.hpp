// gate on a backend, as the C ABI and other operations call it.
#pragma once

#include "gate/contract.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::gate {

Status run(const Backend& backend, const DeviceProperties& device, const Problem& problem, Stream stream);

}  // namespace tokenyard::gate
