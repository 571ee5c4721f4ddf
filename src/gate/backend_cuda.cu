// gate on CUDA.
#include "gate/launch.hpp"
#include "port/cuda.hpp"
#include "runtime/backend.hpp"
#include "tuning/gate.hpp"

namespace tokenyard::gate {

GateOperation cuda_operation() { return Launcher<port::cuda::Port, tuning::kNvidiaGateShapes>::operation(); }

}  // namespace tokenyard::gate
