#include "gate/backend_simt.hpp"

#include "gate/launch.hpp"
#include "port/host.hpp"
#include "runtime/backend.hpp"
#include "tuning/gate.hpp"

namespace tokenyard::gate {

void register_simt_operations() {
  add_operation(kBackendSimt32, Launcher<port::host::Port<32>, tuning::kSimt32GateShapes>::operation());
  add_operation(kBackendSimt64, Launcher<port::host::Port<64>, tuning::kSimt64GateShapes>::operation());
}

}  // namespace tokenyard::gate
