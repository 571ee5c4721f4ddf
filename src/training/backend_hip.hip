// The router's training on HIP.
#include "port/hip.hpp"
#include "runtime/backend.hpp"
#include "training/launch.hpp"
#include "tuning/training.hpp"

namespace tokenyard::training {

TrainingOperations hip_operations() { return Launcher<port::hip::Port, tuning::kAmdRowShapes>::operations(); }

}  // namespace tokenyard::training
