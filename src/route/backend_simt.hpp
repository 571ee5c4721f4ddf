// route's kernel on the SIMT executor, for tests and tools; with warps of 32, as on the cards that have it.
#pragma once

namespace tokenyard::route {

// Completes the row simt32; once, before anything else is called.
void register_simt_operations();

}  // namespace tokenyard::route
