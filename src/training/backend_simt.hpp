// The kernels of the router's training on the SIMT executor, for tests and tools.
#pragma once

namespace tokenyard::training {

// Completes the rows simt32 and simt64; once, before anything else is called.
void register_simt_operations();

}  // namespace tokenyard::training
