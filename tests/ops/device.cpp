#include "device.hpp"

#include "runtime/backend.hpp"

namespace tokenyard::test {

std::string why_missing(const std::string& device) {
  if (device == kReference) return "";
  const Backend* backend = find_backend(device);
  if (backend == nullptr) return "this build does not have it";
  return backend->runtime->device_count() > 0 ? "" : "no device answers";
}

ty_device device_id(const std::string& device) { return {find_backend(device)->id, 0}; }

std::vector<ty_align_path> paths_of(const std::string& device) {
  if (device == "cpu") return {TY_ALIGN_AUTO};
  return {TY_ALIGN_AUTO, TY_ALIGN_EVERYWHERE, TY_ALIGN_GRID, TY_ALIGN_SPLIT};
}

const char* path_name(ty_align_path path) {
  static constexpr const char* kNames[] = {"auto", "everywhere", "grid", "split"};
  return kNames[path];
}

}  // namespace tokenyard::test
