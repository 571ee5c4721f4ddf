#include "port/cpu_runtime.hpp"

#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include "runtime/text.hpp"

namespace tokenyard {
namespace {

constexpr std::align_val_t kAlignment{256};

#if defined(__x86_64__) || defined(_M_X64)
constexpr const char* kArch = "x86-64";
#elif defined(__aarch64__) || defined(_M_ARM64)
constexpr const char* kArch = "aarch64";
#else
constexpr const char* kArch = "unknown";
#endif

// What the kernel calls this CPU; kernels on Arm mostly give it no name.
std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return text(kArch, " CPU");
}

Status unsupported(const char* what) {
  return {TY_UNSUPPORTED, text("cpu: ", what,
                               " does not exist here, expected a GPU backend: calls on the CPU "
                               "are done when they return, so call again and time the host")};
}

Status copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return {};
}

}  // namespace

Status CpuRuntime::properties(int, DeviceProperties& out) {
  out = DeviceProperties{};
  out.name = model_name();
  out.arch = kArch;
  const unsigned threads = std::thread::hardware_concurrency();
  out.multiprocessors = threads == 0 ? 1 : static_cast<int>(threads);
  return {};
}

Status CpuRuntime::set_device(int) { return {}; }

Status CpuRuntime::allocate(size_t bytes, void** memory) {
  *memory = ::operator new(bytes, kAlignment, std::nothrow);
  if (*memory != nullptr) return {};
  return {TY_OUT_OF_MEMORY, text("cpu: allocating ", bytes,
                                 " bytes failed, expected that much free memory: "
                                 "use a smaller problem")};
}

Status CpuRuntime::free(void* memory) {
  ::operator delete(memory, kAlignment);
  return {};
}

Status CpuRuntime::fill(void* memory, unsigned char byte, size_t bytes, Stream) {
  if (bytes > 0) std::memset(memory, byte, bytes);
  return {};
}

Status CpuRuntime::copy_to_device(void* device, const void* host, size_t bytes) {
  return copy(device, host, bytes);
}

Status CpuRuntime::copy_to_host(void* host, const void* device, size_t bytes) {
  return copy(host, device, bytes);
}

Status CpuRuntime::copy_on_device(void* to, const void* from, size_t bytes, Stream) {
  return copy(to, from, bytes);
}

Status CpuRuntime::create_stream(Stream* stream) {
  *stream = nullptr;  // the one stream there is
  return {};
}

Status CpuRuntime::destroy_stream(Stream) { return {}; }

Status CpuRuntime::synchronize(Stream) { return {}; }

Status CpuRuntime::is_capturing(Stream, bool& capturing) {
  capturing = false;
  return {};
}

Status CpuRuntime::capture(Stream, const std::function<Status()>&, Graph*) { return unsupported("a graph"); }
Status CpuRuntime::replay(Graph, Stream) { return unsupported("a graph"); }
Status CpuRuntime::destroy_graph(Graph) { return unsupported("a graph"); }
Status CpuRuntime::create_event(Event*) { return unsupported("an event"); }
Status CpuRuntime::destroy_event(Event) { return unsupported("an event"); }
Status CpuRuntime::record(Event, Stream) { return unsupported("an event"); }
Status CpuRuntime::elapsed_us(Event, Event, double&) { return unsupported("an event"); }

Status CpuRuntime::launch_empty(Stream) { return {}; }
Status CpuRuntime::launch_holder(int, double, Stream) {
  return {TY_UNSUPPORTED, "launch_holder: this backend has no multiprocessors to hold, expected a GPU"};
}

Runtime& cpu_runtime() {
  static CpuRuntime runtime;
  return runtime;
}

}  // namespace tokenyard
