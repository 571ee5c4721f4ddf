// align on CUDA.
#include "align/launch.hpp"
#include "port/cuda.hpp"
#include "port/cuda_runtime.hpp"
#include "runtime/backend.hpp"
#include "tuning/align.hpp"

namespace tokenyard {

const Backend& cuda_backend() {
  static const Backend backend{TY_CUDA, "cuda", &port::cuda::runtime(),
                               align::Launcher<port::cuda::Port, tuning::kNvidiaGeometry>::operation()};
  return backend;
}

}  // namespace tokenyard
