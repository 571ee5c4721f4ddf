#include "harness/synchronize.hpp"

#include "runtime/backend.hpp"

namespace tokenyard::harness {

Status synchronize(ty_device device, Stream stream) {
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  return backend->runtime->synchronize(stream);
}

}  // namespace tokenyard::harness
