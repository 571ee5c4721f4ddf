// gate on CUDA.
#include "gate/launch.hpp"
#include "port/cuda.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::gate {

GateOperation cuda_operation() { return Launcher<port::cuda::Port>::operation(); }

}  // namespace tokenyard::gate
