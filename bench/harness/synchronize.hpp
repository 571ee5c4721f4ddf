// Waiting for a device.
#pragma once

#include "runtime/runtime.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

// Until what was enqueued on the device's stream is done.
Status synchronize(ty_device device, Stream stream);

}  // namespace tokenyard::harness
