#include "route/backend_simt.hpp"

#include "port/host.hpp"
#include "route/launch.hpp"
#include "runtime/backend.hpp"
#include "tuning/route.hpp"

namespace tokenyard::route {

void register_simt_operations() {
  add_operation(kBackendSimt32, Launcher<port::host::Port<32>, tuning::kSimtRoute>::operation());
}

}  // namespace tokenyard::route
