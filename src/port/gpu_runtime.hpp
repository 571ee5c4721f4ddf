// The runtime of a GPU backend. CUDA and HIP name the same functions differently: `Api` maps the names, so
// that this is written once. Included by cuda_runtime.cu and hip_runtime.hip alone.
#pragma once

#include <memory>
#include <string>

#include "runtime/runtime.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port {

__global__ void empty_kernel() {}

template <class Api>
__global__ void holder_kernel(uint64_t nanoseconds) {
  const uint64_t start = Api::device_nanoseconds();
  while (Api::device_nanoseconds() - start < nanoseconds) {
  }
}

template <class Api>
class GpuRuntime final : public Runtime {
  using GpuStream = typename Api::Stream;
  using GpuEvent = typename Api::Event;
  using GpuGraph = typename Api::Graph;
  using GpuGraphExec = typename Api::GraphExec;

 public:
  int device_count() override {
    int count = 0;
    if (Api::get_device_count(&count) != Api::kSuccess) {
      (void)Api::get_last_error();
      return 0;
    }
    return count;
  }

  Status properties(int ordinal, DeviceProperties& out) override { return Api::properties(ordinal, out); }
  Status set_device(int ordinal) override { return check(Api::set_device(ordinal), "set device"); }

  Status allocate(size_t bytes, void** memory) override {
    return check(Api::malloc(memory, bytes), "allocate device memory");
  }
  Status free(void* memory) override { return check(Api::free(memory), "free device memory"); }
  Status fill(void* memory, unsigned char byte, size_t bytes, Stream stream) override {
    return check(Api::memset_async(memory, byte, bytes, gpu(stream)), "fill device memory");
  }
  Status copy_to_device(void* device, const void* host, size_t bytes) override {
    return check(Api::memcpy_to_device(device, host, bytes), "copy to the device");
  }
  Status copy_to_host(void* host, const void* device, size_t bytes) override {
    return check(Api::memcpy_to_host(host, device, bytes), "copy from the device");
  }
  Status copy_on_device(void* to, const void* from, size_t bytes, Stream stream) override {
    return check(Api::memcpy_on_device(to, from, bytes, gpu(stream)), "copy on the device");
  }

  Status create_stream(Stream* stream) override {
    return check(Api::stream_create(reinterpret_cast<GpuStream*>(stream)), "create a stream");
  }
  Status destroy_stream(Stream stream) override {
    return check(Api::stream_destroy(gpu(stream)), "destroy a stream");
  }
  Status synchronize(Stream stream) override {
    return check(Api::stream_synchronize(gpu(stream)), "wait for a stream");
  }
  Status is_capturing(Stream stream, bool& capturing) override {
    return check(Api::is_capturing(gpu(stream), capturing), "ask whether a stream is captured");
  }

  Status capture(Stream stream, const std::function<Status()>& calls, Graph* graph) override {
    TY_RETURN_IF_ERROR(check(Api::begin_capture(gpu(stream)), "begin a capture"));
    const Status captured = calls();
    GpuGraph recorded{};
    const Status ended = check(Api::end_capture(gpu(stream), &recorded), "end a capture");
    if (!captured.ok() || !ended.ok()) {
      if (recorded != nullptr) (void)Api::graph_destroy(recorded);
      return captured.ok() ? ended : captured;
    }
    GpuGraphExec executable{};
    const Status made = check(Api::instantiate(&executable, recorded), "instantiate a graph");
    (void)Api::graph_destroy(recorded);
    *graph = executable;
    return made;
  }
  Status replay(Graph graph, Stream stream) override {
    return check(Api::graph_launch(static_cast<GpuGraphExec>(graph), gpu(stream)), "replay a graph");
  }
  Status destroy_graph(Graph graph) override {
    return check(Api::graph_exec_destroy(static_cast<GpuGraphExec>(graph)), "destroy a graph");
  }

  Status create_event(Event* event) override {
    return check(Api::event_create(reinterpret_cast<GpuEvent*>(event)), "create an event");
  }
  Status destroy_event(Event event) override {
    return check(Api::event_destroy(static_cast<GpuEvent>(event)), "destroy an event");
  }
  Status record(Event event, Stream stream) override {
    return check(Api::event_record(static_cast<GpuEvent>(event), gpu(stream)), "record an event");
  }
  Status elapsed_us(Event from, Event to, double& us) override {
    TY_RETURN_IF_ERROR(check(Api::event_synchronize(static_cast<GpuEvent>(to)), "wait for an event"));
    float ms = 0;
    TY_RETURN_IF_ERROR(check(Api::elapsed_ms(&ms, static_cast<GpuEvent>(from), static_cast<GpuEvent>(to)),
                             "read the time of events"));
    us = 1000.0 * ms;
    return {};
  }

  Status launch_empty(Stream stream) override {
    empty_kernel<<<dim3(1), dim3(32), 0, gpu(stream)>>>();
    return check(Api::get_last_error(), "launch an empty kernel");
  }

  // A block with all the shared memory that there is leaves no room for another.
  Status launch_holder(int multiprocessors, double seconds, Stream stream) override {
    size_t bytes = 0;
    TY_RETURN_IF_ERROR(
        check(Api::take_all_shared_memory(holder_kernel<Api>, &bytes), "reserve shared memory"));
    holder_kernel<Api><<<dim3(static_cast<unsigned>(multiprocessors)), dim3(32), bytes, gpu(stream)>>>(
        static_cast<uint64_t>(1e9 * seconds));
    return check(Api::get_last_error(), "launch a holding kernel");
  }

 private:
  static GpuStream gpu(Stream stream) { return static_cast<GpuStream>(stream); }

  static Status check(typename Api::Error error, const char* what) {
    if (error == Api::kSuccess) return {};
    (void)Api::get_last_error();  // do not leave it for the caller's next check
    return {TY_DEVICE_ERROR, text("cannot ", what, ": ", Api::error_string(error))};
  }
};

}  // namespace tokenyard::port
