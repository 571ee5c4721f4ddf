#include "align/backend_simt.hpp"

#include "align/launch.hpp"
#include "port/host.hpp"
#include "port/host_runtime.hpp"
#include "runtime/backend.hpp"
#include "tuning/align.hpp"

namespace tokenyard {

void register_simt_backends() {
  add_backend({kBackendSimt32, "simt32", &port::host::runtime<32>(),
               align::Launcher<port::host::Port<32>, tuning::kSimt>::operation()});
  add_backend({kBackendSimt64, "simt64", &port::host::runtime<64>(),
               align::Launcher<port::host::Port<64>, tuning::kSimt>::operation()});
}

}  // namespace tokenyard
