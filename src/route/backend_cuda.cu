// route on CUDA.
#include "port/cuda.hpp"
#include "route/launch.hpp"
#include "runtime/backend.hpp"
#include "tuning/route.hpp"

namespace tokenyard::route {

RouteOperation cuda_operation() { return Launcher<port::cuda::Port, tuning::kNvidiaRoute>::operation(); }

}  // namespace tokenyard::route
