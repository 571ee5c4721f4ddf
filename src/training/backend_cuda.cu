// The router's training on CUDA.
#include "port/cuda.hpp"
#include "runtime/backend.hpp"
#include "training/launch.hpp"
#include "tuning/training.hpp"

namespace tokenyard::training {

TrainingOperations cuda_operations() {
  return Launcher<port::cuda::Port, tuning::kNvidiaRowShapes>::operations();
}

}  // namespace tokenyard::training
