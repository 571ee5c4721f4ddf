// Waiting for a device.
#pragma once

#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

// Until what was enqueued on the device's default stream is done.
Status synchronize(ty_device device);

}  // namespace tokenyard::harness
