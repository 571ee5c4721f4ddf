// align's kernels on the SIMT executor, for tests and tools.
#pragma once

namespace tokenyard {

// Adds the rows simt32 and simt64 to the backends; once, before anything else is called.
void register_simt_backends();

}  // namespace tokenyard
