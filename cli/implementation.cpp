#include "implementation.hpp"

#include <memory>

#include "failure.hpp"
#include "handle.hpp"
#include "harness/as_status.hpp"
#ifdef TOKENYARD_BASELINES
#include "baselines/baselines.hpp"
#endif
#ifdef TOKENYARD_CANDIDATES
#include "candidates/candidates.hpp"
#endif

namespace tokenyard::cli {
namespace {

std::shared_ptr<void> allocate(Runtime& runtime, size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  require(runtime.allocate(bytes, &memory));
  return owned(runtime, memory, &Runtime::free);
}

}  // namespace

Implementation library(const Device& device, const ty_align_args& args, Stream stream) {
  size_t bytes = 0;
  require(ty_align_workspace_size(device.id, &args, &bytes));
  const std::shared_ptr<void> memory = allocate(device.runtime(), bytes);
  std::shared_ptr<ty_workspace> workspace;
  if (bytes > 0) {
    ty_workspace* handle = nullptr;
    require(ty_workspace_create(device.id, memory.get(), bytes, stream, &handle));
    workspace = {handle, ty_workspace_destroy};
  }
  return {"tokenyard", true, [id = device.id, memory, workspace, stream](const ty_align_args& call) {
            return harness::as_status(ty_align(id, &call, workspace.get(), stream));
          }};
}

#ifdef TOKENYARD_BASELINES
namespace {

std::vector<Implementation> made_of(const std::vector<baselines::Baseline>& list, const Device& device,
                                    const ty_align_args& args, Stream stream) {
  std::vector<Implementation> all;
  for (const baselines::Baseline& baseline : list) {
    if (!baseline.takes(args)) continue;
    const size_t bytes = baseline.workspace_bytes(args);
    const std::shared_ptr<void> memory = allocate(device.runtime(), bytes);
    const auto with_memory = [memory, bytes, stream](auto function) {
      return
          [=](const ty_align_args& call) { return function(call, Workspace{memory.get(), bytes}, stream); };
    };
    if (baseline.prepare != nullptr) require(with_memory(baseline.prepare)(args));
    all.push_back({baseline.name, baseline.stable, with_memory(baseline.run)});
  }
  return all;
}

}  // namespace

std::vector<Implementation> baselines(const Device& device, const ty_align_args& args, Stream stream) {
  return made_of(baselines::all(), device, args, stream);
}
#else
std::vector<Implementation> baselines(const Device&, const ty_align_args&, Stream) { return {}; }
#endif

#ifdef TOKENYARD_CANDIDATES
std::vector<Implementation> candidates(const Device& device, const ty_align_args& args, Stream stream) {
  return made_of(candidates::align(), device, args, stream);
}
#else
std::vector<Implementation> candidates(const Device&, const ty_align_args&, Stream) { return {}; }
#endif

}  // namespace tokenyard::cli
