// What the library and its tools need of a backend beside launches: devices, memory, streams, graphs.
// One object per backend; a port implements it (port/gpu_runtime.hpp, port/host_runtime.cpp).
//
// Operations use only `properties`, `fill` and `is_capturing`; the rest serves the command line tool, the
// tests and the benchmarks, which are written once for all backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/status.hpp"

namespace tokenyard {

struct DeviceProperties {
  std::string name;         // "NVIDIA H200"
  std::string arch;         // "sm_90", "gfx942", "x86-64"
  int multiprocessors = 1;  // compute units; cores on a CPU
  int warp_size = 1;
  int max_cluster = 1;       // blocks in a cluster; 1 if the device has none
  bool cooperative = false;  // can launch a grid that is resident as a whole
  bool linked = false;       // can begin a launch before the one that it is linked to has ended
};

using Stream = void*;  // the backend's own handle
using Graph = void*;   // an instantiated graph
using Event = void*;

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int device_count() = 0;  // 0 if the driver does not answer
  virtual Status properties(int ordinal, DeviceProperties& out) = 0;
  virtual Status set_device(int ordinal) = 0;  // for the calling thread

  virtual Status allocate(size_t bytes, void** memory) = 0;  // aligned to 256 bytes
  virtual Status free(void* memory) = 0;
  virtual Status fill(void* memory, unsigned char byte, size_t bytes, Stream stream) = 0;  // asynchronous
  virtual Status copy_to_device(void* device, const void* host, size_t bytes) = 0;
  virtual Status copy_to_host(void* host, const void* device, size_t bytes) = 0;
  virtual Status copy_on_device(void* to, const void* from, size_t bytes, Stream stream) = 0;

  virtual Status create_stream(Stream* stream) = 0;  // does not wait for the default stream
  virtual Status destroy_stream(Stream stream) = 0;
  virtual Status synchronize(Stream stream) = 0;
  virtual Status is_capturing(Stream stream, bool& capturing) = 0;

  // TY_UNSUPPORTED on backends without graphs or events.
  virtual Status capture(Stream stream, const std::function<Status()>& calls, Graph* graph) = 0;
  virtual Status replay(Graph graph, Stream stream) = 0;
  virtual Status destroy_graph(Graph graph) = 0;
  virtual Status create_event(Event* event) = 0;
  virtual Status destroy_event(Event event) = 0;
  virtual Status record(Event event, Stream stream) = 0;
  virtual Status elapsed_us(Event from, Event to, double& us) = 0;  // waits for `to`

  // Launches a kernel that does nothing: the floor of every measurement.
  virtual Status launch_empty(Stream stream) = 0;

  // Launches a kernel that takes whole multiprocessors for itself for a while: what other launches must
  // live with.
  virtual Status launch_holder(int multiprocessors, double seconds, Stream stream) = 0;
};

}  // namespace tokenyard
