// route on a backend: in one launch, or gate's and then align's.
#pragma once

#include <cstddef>
#include <string>

#include "route/contract.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::route {

// Enough for two launches, should one be refused.
size_t workspace_size(const Backend& backend, const DeviceProperties& device, const Problem& problem);

Status run(const Backend& backend, const DeviceProperties& device, const Problem& problem,
           Workspace workspace, Stream stream);

// Which launches, and why.
std::string explain(const Backend& backend, const DeviceProperties& device, const Problem& problem);

}  // namespace tokenyard::route
