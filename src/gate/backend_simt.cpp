#include "gate/backend_simt.hpp"

#include "gate/launch.hpp"
#include "port/host.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::gate {

void register_simt_operations() {
  add_operation(kBackendSimt32, Launcher<port::host::Port<32>>::operation());
  add_operation(kBackendSimt64, Launcher<port::host::Port<64>>::operation());
}

}  // namespace tokenyard::gate
