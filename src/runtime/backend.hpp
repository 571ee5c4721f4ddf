// The backends of this build, as a table: one row each, with its runtime and its implementation of every
// operation. The public library holds CPU and, where built, CUDA and HIP; tools and tests add the SIMT
// executor's two rows with add_backend().
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/runtime.hpp"
#include "runtime/status.hpp"
#include "tokenyard/tokenyard.h"
#include "tuning/route.hpp"

namespace tokenyard {

namespace align {
struct Problem;
}
namespace gate {
struct Problem;
}
namespace route {
struct Problem;
}
namespace training {
struct GateBackwardProblem;
struct RouterLossProblem;
struct BalanceProblem;
}  // namespace training

// The executor's rows. Not part of the public enum: the public library never holds them.
inline constexpr int32_t kBackendSimt32 = 32;
inline constexpr int32_t kBackendSimt64 = 64;

struct Workspace {
  void* memory = nullptr;
  size_t bytes = 0;
};

struct AlignOperation {
  size_t (*workspace_size)(const DeviceProperties&, const align::Problem&);
  Status (*run)(const DeviceProperties&, const align::Problem&, Workspace, Stream);
  std::string (*explain)(const DeviceProperties&, const align::Problem&);
};

struct GateOperation {
  Status (*run)(const DeviceProperties&, const gate::Problem&, Stream) = nullptr;
  std::string (*explain)(const DeviceProperties&, const gate::Problem&) = nullptr;
};

// In one launch, where there is one; without, gate and align do it.
struct RouteOperation {
  std::span<const tuning::RouteLaunch> launches = {};
  Status (*run)(int32_t launch, const route::Problem&, Stream) = nullptr;  // a number of the list, from 1
};

struct TrainingOperations {
  Status (*gate_backward)(const DeviceProperties&, const training::GateBackwardProblem&, Stream) = nullptr;
  Status (*router_loss)(const DeviceProperties&, const training::RouterLossProblem&, Stream) = nullptr;
  Status (*balance)(const DeviceProperties&, const training::BalanceProblem&, Stream) = nullptr;
};

struct Backend {
  int32_t id;        // ty_backend, or kBackendSimt*
  const char* name;  // as on the command line: "cpu", "cuda", "hip", "simt32", "simt64"
  Runtime* runtime;
  AlignOperation align;
  GateOperation gate = {};
  RouteOperation route = {};
  TrainingOperations training = {};
};

// Where an operation's backends are: src/<operation>/backend_*.
namespace gate {
GateOperation cpu_operation();
GateOperation cuda_operation();
GateOperation hip_operation();
}  // namespace gate
namespace route {
RouteOperation cuda_operation();
}
namespace training {
TrainingOperations cpu_operations();
TrainingOperations cuda_operations();
TrainingOperations hip_operations();
}  // namespace training
const Backend& cpu_backend();
const Backend& cuda_backend();  // defined only in builds with TOKENYARD_CUDA
const Backend& hip_backend();   // defined only in builds with TOKENYARD_HIP

// Adds a row. Before the first call of any operation; not thread-safe.
void add_backend(const Backend& backend);

// Completes the row of a backend that is there. Likewise.
void add_operation(int32_t backend, GateOperation gate);
void add_operation(int32_t backend, RouteOperation route);
void add_operations(int32_t backend, TrainingOperations training);

const Backend* find_backend(int32_t id);               // nullptr if this build does not have it
const Backend* find_backend(const std::string& name);  // likewise

// The row and the properties of a device (queried once and kept), or an error that says what is missing.
Status find_device(ty_device device, const Backend** backend, const DeviceProperties** properties);

}  // namespace tokenyard
