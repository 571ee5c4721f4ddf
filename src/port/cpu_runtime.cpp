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

class CpuRuntime final : public Runtime {
 public:
  int device_count() override { return 1; }

  Status properties(int, DeviceProperties& out) override {
    out = DeviceProperties{};
    out.name = model_name();
    out.arch = kArch;
    const unsigned threads = std::thread::hardware_concurrency();
    out.multiprocessors = threads == 0 ? 1 : static_cast<int>(threads);
    return {};
  }

  Status set_device(int) override { return {}; }

  Status allocate(size_t bytes, void** memory) override {
    *memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (*memory != nullptr) return {};
    return {TY_OUT_OF_MEMORY, text("cpu: allocating ", bytes,
                                   " bytes failed, expected that much free memory: "
                                   "use a smaller problem")};
  }

  Status free(void* memory) override {
    ::operator delete(memory, kAlignment);
    return {};
  }

  Status fill(void* memory, unsigned char byte, size_t bytes, Stream) override {
    if (bytes > 0) std::memset(memory, byte, bytes);
    return {};
  }

  Status copy_to_device(void* device, const void* host, size_t bytes) override {
    return copy(device, host, bytes);
  }
  Status copy_to_host(void* host, const void* device, size_t bytes) override {
    return copy(host, device, bytes);
  }
  Status copy_on_device(void* to, const void* from, size_t bytes, Stream) override {
    return copy(to, from, bytes);
  }

  Status create_stream(Stream* stream) override {
    *stream = nullptr;  // the one stream there is
    return {};
  }
  Status destroy_stream(Stream) override { return {}; }
  Status synchronize(Stream) override { return {}; }
  Status is_capturing(Stream, bool& capturing) override {
    capturing = false;
    return {};
  }

  Status capture(Stream, const std::function<Status()>&, Graph*) override { return unsupported("a graph"); }
  Status replay(Graph, Stream) override { return unsupported("a graph"); }
  Status destroy_graph(Graph) override { return unsupported("a graph"); }
  Status create_event(Event*) override { return unsupported("an event"); }
  Status destroy_event(Event) override { return unsupported("an event"); }
  Status record(Event, Stream) override { return unsupported("an event"); }
  Status elapsed_us(Event, Event, double&) override { return unsupported("an event"); }

  Status launch_empty(Stream) override { return {}; }

 private:
  static Status copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
};

}  // namespace

Runtime& cpu_runtime() {
  static CpuRuntime runtime;
  return runtime;
}

}  // namespace tokenyard
