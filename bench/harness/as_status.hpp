// What a call of the C ABI returned, with its sentence.
#pragma once

#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard::harness {

inline Status as_status(ty_status code) { return code == TY_OK ? Status() : Status(code, ty_last_error()); }

}  // namespace tokenyard::harness
