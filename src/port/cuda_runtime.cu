#include <cuda_runtime.h>

#include "port/cuda_runtime.hpp"
#include "port/gpu_runtime.hpp"

namespace tokenyard::port::cuda {
namespace {

struct Api {
  using Error = cudaError_t;
  using Stream = cudaStream_t;
  using Event = cudaEvent_t;
  using Graph = cudaGraph_t;
  using GraphExec = cudaGraphExec_t;
  static constexpr Error kSuccess = cudaSuccess;

  static const char* error_string(Error error) { return cudaGetErrorString(error); }
  static Error get_last_error() { return cudaGetLastError(); }
  static Error get_device_count(int* count) { return cudaGetDeviceCount(count); }
  static Error set_device(int ordinal) { return cudaSetDevice(ordinal); }

  static Status properties(int ordinal, DeviceProperties& out) {
    cudaDeviceProp given;
    if (const Error error = cudaGetDeviceProperties(&given, ordinal); error != cudaSuccess) {
      return {TY_DEVICE_ERROR,
              text("cannot read the properties of device ", ordinal, ": ", error_string(error))};
    }
    out.name = given.name;
    out.arch = text("sm_", given.major, given.minor);
    out.multiprocessors = given.multiProcessorCount;
    out.warp_size = given.warpSize;
    out.max_cluster = given.major == 9 ? 16 : given.major > 9 ? 8 : 1;  // 8 is the portable size
    out.cooperative = given.cooperativeLaunch != 0;
    int driver = 0;
    constexpr int kFirstThatCapturesLinks = 12030;
    out.linked =
        given.major >= 9 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= kFirstThatCapturesLinks;
    return {};
  }

  static Error malloc(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
  static Error free(void* memory) { return cudaFree(memory); }
  static Error memset_async(void* to, int byte, size_t bytes, Stream stream) {
    return cudaMemsetAsync(to, byte, bytes, stream);
  }
  static Error memcpy_to_device(void* to, const void* from, size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  static Error memcpy_to_host(void* to, const void* from, size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
  }
  static Error memcpy_on_device(void* to, const void* from, size_t bytes, Stream stream) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  }

  static __device__ uint64_t device_nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

  static Error take_all_shared_memory(void (*kernel)(uint64_t), size_t* bytes) {
    int device = 0;
    int limit = 0;
    Error error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
      error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    }
    *bytes = static_cast<size_t>(limit);
    return error != cudaSuccess
               ? error
               : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit);
  }

  static Error stream_create(Stream* stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  }
  static Error stream_destroy(Stream stream) { return cudaStreamDestroy(stream); }
  static Error stream_synchronize(Stream stream) { return cudaStreamSynchronize(stream); }
  static Error is_capturing(Stream stream, bool& capturing) {
    cudaStreamCaptureStatus status{};
    const Error error = cudaStreamIsCapturing(stream, &status);
    capturing = status != cudaStreamCaptureStatusNone;
    return error;
  }
  static Error begin_capture(Stream stream) {
    return cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  }
  static Error end_capture(Stream stream, Graph* graph) { return cudaStreamEndCapture(stream, graph); }
  static Error instantiate(GraphExec* executable, Graph graph) {
    return cudaGraphInstantiate(executable, graph, 0);
  }
  static Error graph_launch(GraphExec graph, Stream stream) { return cudaGraphLaunch(graph, stream); }
  static Error graph_destroy(Graph graph) { return cudaGraphDestroy(graph); }
  static Error graph_exec_destroy(GraphExec graph) { return cudaGraphExecDestroy(graph); }

  static Error event_create(Event* event) { return cudaEventCreate(event); }
  static Error event_destroy(Event event) { return cudaEventDestroy(event); }
  static Error event_record(Event event, Stream stream) { return cudaEventRecord(event, stream); }
  static Error event_synchronize(Event event) { return cudaEventSynchronize(event); }
  static Error elapsed_ms(float* ms, Event from, Event to) { return cudaEventElapsedTime(ms, from, to); }
};

}  // namespace

Runtime& runtime() {
  static GpuRuntime<Api> runtime;
  return runtime;
}

}  // namespace tokenyard::port::cuda
