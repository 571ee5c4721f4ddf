// gate on HIP.
#include "gate/launch.hpp"
#include "port/hip.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::gate {

GateOperation hip_operation() { return Launcher<port::hip::Port>::operation(); }

}  // namespace tokenyard::gate
