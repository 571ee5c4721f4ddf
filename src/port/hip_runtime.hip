#include <hip/hip_runtime.h>

#include "port/gpu_runtime.hpp"
#include "port/hip_runtime.hpp"

namespace tokenyard::port::hip {
namespace {

struct Api {
  using Error = hipError_t;
  using Stream = hipStream_t;
  using Event = hipEvent_t;
  using Graph = hipGraph_t;
  using GraphExec = hipGraphExec_t;
  static constexpr Error kSuccess = hipSuccess;

  static const char* error_string(Error error) { return hipGetErrorString(error); }
  static Error get_last_error() { return hipGetLastError(); }
  static Error get_device_count(int* count) { return hipGetDeviceCount(count); }
  static Error set_device(int ordinal) { return hipSetDevice(ordinal); }

  static Status properties(int ordinal, DeviceProperties& out) {
    hipDeviceProp_t given;
    if (const Error error = hipGetDeviceProperties(&given, ordinal); error != hipSuccess) {
      return {TY_DEVICE_ERROR,
              text("cannot read the properties of device ", ordinal, ": ", error_string(error))};
    }
    out.name = given.name;
    const std::string arch = given.gcnArchName;  // "gfx90a:sramecc+:xnack-"
    out.arch = arch.substr(0, arch.find(':'));
    out.multiprocessors = given.multiProcessorCount;
    out.warp_size = given.warpSize;
    out.max_cluster = 1;
    out.cooperative = given.cooperativeLaunch != 0;
    return {};
  }

  static Error malloc(void** memory, size_t bytes) { return hipMalloc(memory, bytes); }
  static Error free(void* memory) { return hipFree(memory); }
  static Error memset_async(void* to, int byte, size_t bytes, Stream stream) {
    return hipMemsetAsync(to, byte, bytes, stream);
  }
  static Error memcpy_to_device(void* to, const void* from, size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
  }
  static Error memcpy_to_host(void* to, const void* from, size_t bytes) {
    return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
  }
  static Error memcpy_on_device(void* to, const void* from, size_t bytes, Stream stream) {
    return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, stream);
  }

  // The clock of these cards ticks at 100 MHz.
  static __device__ uint64_t device_nanoseconds() { return 10 * __builtin_amdgcn_s_memrealtime(); }

  static Error take_all_shared_memory(void (*)(uint64_t), size_t* bytes) {
    int device = 0;
    int limit = 0;
    Error error = hipGetDevice(&device);
    if (error == hipSuccess) {
      error = hipDeviceGetAttribute(&limit, hipDeviceAttributeMaxSharedMemoryPerBlock, device);
    }
    *bytes = static_cast<size_t>(limit);
    return error;
  }

  static Error stream_create(Stream* stream) {
    return hipStreamCreateWithFlags(stream, hipStreamNonBlocking);
  }
  static Error stream_destroy(Stream stream) { return hipStreamDestroy(stream); }
  static Error stream_synchronize(Stream stream) { return hipStreamSynchronize(stream); }
  static Error is_capturing(Stream stream, bool& capturing) {
    hipStreamCaptureStatus status{};
    const Error error = hipStreamIsCapturing(stream, &status);
    capturing = status != hipStreamCaptureStatusNone;
    return error;
  }
  static Error begin_capture(Stream stream) {
    return hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal);
  }
  static Error end_capture(Stream stream, Graph* graph) { return hipStreamEndCapture(stream, graph); }
  static Error instantiate(GraphExec* executable, Graph graph) {
    return hipGraphInstantiate(executable, graph, nullptr, nullptr, 0);
  }
  static Error graph_launch(GraphExec graph, Stream stream) { return hipGraphLaunch(graph, stream); }
  static Error graph_destroy(Graph graph) { return hipGraphDestroy(graph); }
  static Error graph_exec_destroy(GraphExec graph) { return hipGraphExecDestroy(graph); }

  static Error event_create(Event* event) { return hipEventCreate(event); }
  static Error event_destroy(Event event) { return hipEventDestroy(event); }
  static Error event_record(Event event, Stream stream) { return hipEventRecord(event, stream); }
  static Error event_synchronize(Event event) { return hipEventSynchronize(event); }
  static Error elapsed_ms(float* ms, Event from, Event to) { return hipEventElapsedTime(ms, from, to); }
};

}  // namespace

Runtime& runtime() {
  static GpuRuntime<Api> runtime;
  return runtime;
}

}  // namespace tokenyard::port::hip
