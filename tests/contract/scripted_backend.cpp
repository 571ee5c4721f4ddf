#include "scripted_backend.hpp"

#include "port/cpu_runtime.hpp"

namespace tokenyard::test {
namespace {

Script script;

class ScriptedRuntime final : public CpuRuntime {
 public:
  int device_count() override { return 2; }
  Status fill(void* memory, unsigned char byte, size_t bytes, Stream stream) override {
    script.filled_bytes = static_cast<int>(bytes);
    return CpuRuntime::fill(memory, byte, bytes, stream);
  }
  Status is_capturing(Stream stream, bool& capturing) override {
    capturing = stream != nullptr && stream == script.captured_stream;
    return {};
  }
};

}  // namespace

Script& restart_script() {
  static ScriptedRuntime runtime;
  static const bool added = [] {
    add_backend(
        {kScriptedBackend,
         "scripted",
         &runtime,
         {[](const DeviceProperties&, const align::Problem&) { return script.workspace_bytes; },
          [](const DeviceProperties&, const align::Problem&, Workspace workspace, Stream) {
            return script.run(workspace);
          },
          [](const DeviceProperties&, const align::Problem&) { return std::string("scripted: as told"); }}});
    return true;
  }();
  static_cast<void>(added);
  return script = Script();
}

}  // namespace tokenyard::test
