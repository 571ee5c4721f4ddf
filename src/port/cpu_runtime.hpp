// The runtime of TY_CPU: host memory, one device, calls that are done when they return. The SIMT executor
// builds on it (host_runtime.cpp).
#pragma once

#include "runtime/runtime.hpp"

namespace tokenyard {

class CpuRuntime : public Runtime {
 public:
  int device_count() override { return 1; }
  Status properties(int ordinal, DeviceProperties& out) override;
  Status set_device(int ordinal) override;

  Status allocate(size_t bytes, void** memory) override;
  Status free(void* memory) override;
  Status fill(void* memory, unsigned char byte, size_t bytes, Stream stream) override;
  Status copy_to_device(void* device, const void* host, size_t bytes) override;
  Status copy_to_host(void* host, const void* device, size_t bytes) override;
  Status copy_on_device(void* to, const void* from, size_t bytes, Stream stream) override;

  Status create_stream(Stream* stream) override;
  Status destroy_stream(Stream stream) override;
  Status synchronize(Stream stream) override;
  Status is_capturing(Stream stream, bool& capturing) override;

  Status capture(Stream stream, const std::function<Status()>& calls, Graph* graph) override;
  Status replay(Graph graph, Stream stream) override;
  Status destroy_graph(Graph graph) override;
  Status create_event(Event* event) override;
  Status destroy_event(Event event) override;
  Status record(Event event, Stream stream) override;
  Status elapsed_us(Event from, Event to, double& us) override;

  Status launch_empty(Stream stream) override;
  Status launch_holder(int multiprocessors, double seconds, Stream stream) override;
};

Runtime& cpu_runtime();

}  // namespace tokenyard
