#include "training/backend_simt.hpp"

#include "port/host.hpp"
#include "runtime/backend.hpp"
#include "training/launch.hpp"
#include "tuning/training.hpp"

namespace tokenyard::training {

void register_simt_operations() {
  add_operations(kBackendSimt32, Launcher<port::host::Port<32>, tuning::kSimt32RowShapes>::operations());
  add_operations(kBackendSimt64, Launcher<port::host::Port<64>, tuning::kSimt64RowShapes>::operations());
}

}  // namespace tokenyard::training
