// route's kernel on the SIMT executor, for tests and tools.
#pragma once

namespace tokenyard::route {

// Completes the rows simt32 and simt64; once, before anything else is called.
void register_simt_operations();

}  // namespace tokenyard::route
