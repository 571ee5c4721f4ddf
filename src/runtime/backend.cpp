#include "runtime/backend.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/text.hpp"

namespace tokenyard {
namespace {

Backend row_of(Backend row, GateOperation gate, TrainingOperations training, RouteOperation route = {}) {
  row.gate = gate;
  row.training = training;
  row.route = route;
  return row;
}

std::vector<Backend>& rows() {
  static std::vector<Backend> table{
      row_of(cpu_backend(), gate::cpu_operation(), training::cpu_operations()),
#ifdef TOKENYARD_CUDA
      row_of(cuda_backend(), gate::cuda_operation(), training::cuda_operations(), route::cuda_operation()),
#endif
#ifdef TOKENYARD_HIP
      row_of(hip_backend(), gate::hip_operation(), training::hip_operations()),
#endif
  };
  return table;
}

const char* backend_name(int32_t id) {
  switch (id) {
    case TY_CPU:
      return "cpu";
    case TY_CUDA:
      return "cuda";
    case TY_HIP:
      return "hip";
    case kBackendSimt32:
      return "simt32";
    case kBackendSimt64:
      return "simt64";
    default:
      return nullptr;
  }
}

Status missing(int32_t id) {
  const char* name = backend_name(id);
  if (name == nullptr) {
    return {TY_INVALID_ARGUMENT,
            text("device: backend is ", id, ", expected TY_CPU, TY_CUDA or TY_HIP: see ty_best_device()")};
  }
  return {TY_UNSUPPORTED, text("device: this build has no backend ", name,
                               ", expected a build with it: configure with -DTOKENYARD_CUDA=ON or "
                               "-DTOKENYARD_HIP=ON, or use the CPU")};
}

}  // namespace

void add_backend(const Backend& backend) { rows().push_back(backend); }

void add_operation(int32_t backend, GateOperation gate) {
  for (Backend& row : rows()) {
    if (row.id == backend) row.gate = gate;
  }
}

void add_operation(int32_t backend, RouteOperation route) {
  for (Backend& row : rows()) {
    if (row.id == backend) row.route = route;
  }
}

void add_operations(int32_t backend, TrainingOperations training) {
  for (Backend& row : rows()) {
    if (row.id == backend) row.training = training;
  }
}

const Backend* find_backend(int32_t id) {
  for (const Backend& row : rows()) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

const Backend* find_backend(const std::string& name) {
  for (const Backend& row : rows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Status find_device(ty_device device, const Backend** backend, const DeviceProperties** properties) {
  const Backend* row = find_backend(device.backend);
  if (row == nullptr) return missing(device.backend);

  static std::mutex mutex;
  static std::map<std::pair<int32_t, int32_t>, DeviceProperties> known;
  const std::lock_guard lock(mutex);
  auto entry = known.find({device.backend, device.ordinal});
  if (entry == known.end()) {
    const int count = row->runtime->device_count();
    if (count == 0) {
      return {TY_UNSUPPORTED,
              text("device: no ", row->name,
                   " device answers, expected at least one: check the driver, or use the CPU")};
    }
    if (device.ordinal < 0 || device.ordinal >= count) {
      return {TY_INVALID_ARGUMENT, text("device: ordinal is ", device.ordinal, ", expected 0 to ", count - 1,
                                        ": ask ty_device_count()")};
    }
    DeviceProperties queried;
    TY_RETURN_IF_ERROR(row->runtime->properties(device.ordinal, queried));
    entry = known.emplace(std::pair{device.backend, device.ordinal}, std::move(queried)).first;
  }
  *backend = row;
  *properties = &entry->second;
  return {};
}

}  // namespace tokenyard
