// align on HIP.
#include "align/launch.hpp"
#include "port/hip.hpp"
#include "port/hip_runtime.hpp"
#include "runtime/backend.hpp"
#include "tuning/align.hpp"

namespace tokenyard {

const Backend& hip_backend() {
  static const Backend backend{TY_HIP, "hip", &port::hip::runtime(),
                               align::Launcher<port::hip::Port, tuning::kAmd>::operation()};
  return backend;
}

}  // namespace tokenyard
