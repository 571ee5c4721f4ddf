// gate on HIP.
#include "gate/launch.hpp"
#include "port/hip.hpp"
#include "runtime/backend.hpp"
#include "tuning/gate.hpp"

namespace tokenyard::gate {

GateOperation hip_operation() { return Launcher<port::hip::Port, tuning::kAmdGateShapes>::operation(); }

}  // namespace tokenyard::gate
