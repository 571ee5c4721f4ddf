#include "port/host_runtime.hpp"

#include "port/cpu_runtime.hpp"
#include "port/host.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::host {
namespace {

constexpr unsigned char kPoison = 0xCB;

struct Empty {
  static constexpr int threads = 64;
  static constexpr int cluster = 1;
  static constexpr bool cooperative = false;

  template <class Thread>
  void operator()(Thread&) const {}
};

// The CPU's memory and streams, another device.
template <int WarpSize>
class SimtRuntime final : public CpuRuntime {
 public:
  Status properties(int, DeviceProperties& out) override {
    out.name = text("SIMT executor (warps of ", WarpSize, ")");
    out.arch = text("simt", WarpSize);
    out.multiprocessors = simt::kMultiprocessors;
    out.warp_size = WarpSize;
    out.max_cluster = simt::kMaxCluster;
    out.cooperative = true;
    out.linked = true;
    return {};
  }

  Status allocate(size_t bytes, void** memory) override {
    TY_RETURN_IF_ERROR(CpuRuntime::allocate(bytes, memory));
    return fill(*memory, kPoison, bytes, nullptr);
  }

  Status launch_empty(Stream stream) override { return Port<WarpSize>::launch(Empty{}, 1, stream); }
};

}  // namespace

template <int WarpSize>
Runtime& runtime() {
  static SimtRuntime<WarpSize> runtime;
  return runtime;
}

template Runtime& runtime<32>();
template Runtime& runtime<64>();

}  // namespace tokenyard::port::host
