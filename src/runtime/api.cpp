// The C ABI: checks, looks the device up, calls the backend's row. No other file has extern "C" functions.
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "align/contract.hpp"
#include "gate/run.hpp"
#include "route/run.hpp"
#include "runtime/backend.hpp"
#include "runtime/check.hpp"
#include "runtime/text.hpp"
#include "tokenyard/tokenyard.h"
#include "training/contract.hpp"

struct ty_workspace {
  ty_device device;
  tokenyard::Workspace memory;
};

namespace tokenyard {
namespace {

constexpr size_t kWorkspaceAlignment = 256;

thread_local std::string last_error;

// Runs `call`, keeps its message for ty_last_error(), and lets no exception out of the ABI.
template <class Call>
ty_status guarded(Call&& call) {
  try {
    Status status = call();
    last_error = status.message();
    return status.code();
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";  // short enough for a string to hold without allocating
    return TY_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error = error.what();
    return TY_DEVICE_ERROR;
  }
}

Status copy_text(const char* operation, const std::string& from, char* to, size_t size) {
  if (to == nullptr || size == 0) {
    return {TY_INVALID_ARGUMENT, text(operation, ": text is ", static_cast<const void*>(to), " of ", size,
                                      " bytes, expected room for at least one: pass a buffer")};
  }
  to[from.copy(to, size - 1)] = '\0';
  return {};
}

Status expect_place(const char* operation, const size_t* bytes) {
  if (bytes != nullptr) return {};
  return {TY_INVALID_ARGUMENT,
          text(operation, ": bytes is NULL, expected where to put the size: pass the address of a size_t")};
}

// A call whose arguments were checked, and who runs it.
template <class Problem>
struct Call {
  Problem problem;
  const Backend* backend;
  const DeviceProperties* device;
};

template <class Args, class Problem>
Status prepare(ty_device device, const Args* args, Pointers pointers, Call<Problem>& call) {
  TY_RETURN_IF_ERROR(check(args, pointers, call.problem));  // of the operation that the types belong to
  return find_device(device, &call.backend, &call.device);
}

// What a kernel adds to must be cleared before.
template <class Problem>
Status prepare_outputs(Runtime&, const Problem&, void*) {
  return {};
}
Status prepare_outputs(Runtime& runtime, const training::RouterLossProblem& problem, void* stream) {
  if (problem.ids == nullptr) return {};
  const int64_t counts = int64_t{problem.num_sequences} * problem.num_experts;
  return runtime.fill(problem.counts, 0, static_cast<size_t>(counts) * sizeof(int32_t), stream);
}

// The operations that take neither a workspace nor a path: check, look the device up, run.
template <class Problem, class Args>
Status run_training(ty_device device, const Args* args,
                    Status (*TrainingOperations::*run)(const DeviceProperties&, const Problem&, Stream),
                    void* stream) {
  Problem problem;
  TY_RETURN_IF_ERROR(training::check(args, problem));
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  TY_RETURN_IF_ERROR(backend->runtime->set_device(device.ordinal));
  TY_RETURN_IF_ERROR(prepare_outputs(*backend->runtime, problem, stream));
  return (backend->training.*run)(*properties, problem, stream);
}

Status check_workspace(const char* operation, ty_device device, const ty_workspace* given, size_t needed,
                       Workspace& out) {
  if (needed == 0) return {};
  if (given == nullptr) {
    return {TY_WORKSPACE_REQUIRED,
            text(operation, ": workspace is NULL, expected one of at least ", needed, " bytes: ask ty_",
                 operation, "_workspace_size() and prepare the memory with ty_workspace_create()")};
  }
  if (given->device.backend != device.backend || given->device.ordinal != device.ordinal) {
    return {TY_WORKSPACE_REQUIRED,
            text(operation, ": workspace was prepared for device ", given->device.backend, ":",
                 given->device.ordinal, ", expected ", device.backend, ":", device.ordinal,
                 ": prepare one on the device that runs the call")};
  }
  if (given->memory.bytes < needed) {
    return {TY_WORKSPACE_REQUIRED,
            text(operation, ": workspace has ", given->memory.bytes, " bytes, expected at least ", needed,
                 ": ask the size query with the largest shapes that you run")};
  }
  out = given->memory;
  return {};
}

Status check_memory(const char* operation, const void* memory) {
  if (memory != nullptr && reinterpret_cast<uintptr_t>(memory) % kWorkspaceAlignment == 0) return {};
  return {TY_INVALID_ARGUMENT, text(operation, ": memory is ", memory, ", expected device memory aligned to ",
                                    kWorkspaceAlignment, " bytes: what the device's allocator returns is")};
}

// A call whose workspace is memory of its own: how much.
size_t once(Call<align::Problem>& call) {
  call.problem.once = true;
  return call.backend->align.workspace_size(*call.device, call.problem);
}
size_t once(Call<route::Problem>& call) {
  call.problem.align.once = true;
  return route::workspace_size(*call.backend, *call.device, call.problem);
}

// In front of all that the call launches: gate's launch and the align that is linked to it stand side by
// side.
Status clear_memory(const char* operation, Runtime& runtime, void* memory, size_t bytes, size_t needed,
                    void* stream) {
  if (needed == 0) return {};
  if (bytes < needed) {
    return {TY_WORKSPACE_REQUIRED,
            text(operation, ": memory has ", bytes, " bytes, expected at least ", needed, ": ask ty_",
                 operation, "_once_size() with the same arguments")};
  }
  TY_RETURN_IF_ERROR(check_memory(operation, memory));
  return runtime.fill(memory, 0, needed, stream);
}

Status create_workspace(ty_device device, void* memory, size_t bytes, void* stream,
                        ty_workspace** workspace) {
  const char* operation = "workspace_create";
  if (workspace == nullptr) {
    return {
        TY_INVALID_ARGUMENT,
        text(operation,
             ": workspace is NULL, expected where to put the handle: pass the address of a ty_workspace*")};
  }
  *workspace = nullptr;
  TY_RETURN_IF_ERROR(check_memory(operation, memory));
  if (bytes == 0) {
    return {TY_INVALID_ARGUMENT, text(operation,
                                      ": bytes is 0, expected at least 1: where the size query "
                                      "says 0, pass NULL to the operation")};
  }
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  TY_RETURN_IF_ERROR(backend->runtime->set_device(device.ordinal));
  bool capturing = false;
  TY_RETURN_IF_ERROR(backend->runtime->is_capturing(stream, capturing));
  if (capturing) {
    return {TY_INVALID_ARGUMENT, text(operation,
                                      ": stream is being captured, expected one that is not: a "
                                      "replay would wipe the state; prepare before the capture")};
  }
  TY_RETURN_IF_ERROR(backend->runtime->fill(memory, 0, bytes, stream));
  *workspace = new ty_workspace{device, {memory, bytes}};
  return {};
}

}  // namespace
}  // namespace tokenyard

using namespace tokenyard;

extern "C" {

#define TY_STRINGIFY_(x) #x
#define TY_STRINGIFY(x) TY_STRINGIFY_(x)

const char* ty_version(void) {
  return TY_STRINGIFY(TY_VERSION_MAJOR) "." TY_STRINGIFY(TY_VERSION_MINOR) "." TY_STRINGIFY(TY_VERSION_PATCH);
}

const char* ty_last_error(void) { return last_error.c_str(); }

int32_t ty_device_count(int32_t backend) {
  int32_t count = 0;
  guarded([&]() -> Status {
    const Backend* found = nullptr;
    const DeviceProperties* properties = nullptr;
    TY_RETURN_IF_ERROR(find_device({backend, 0}, &found, &properties));
    count = found->runtime->device_count();
    return {};
  });
  return count;
}

ty_device ty_best_device(void) {
  std::string before;  // what a missing backend says is no error of the caller's
  before.swap(last_error);
  int32_t best = TY_CPU;
  for (int32_t backend : {TY_HIP, TY_CUDA}) {
    if (ty_device_count(backend) > 0) best = backend;
  }
  before.swap(last_error);
  return {best, 0};
}

ty_status ty_device_describe(ty_device device, char* out, size_t size) {
  return guarded([&]() -> Status {
    const Backend* backend = nullptr;
    const DeviceProperties* properties = nullptr;
    TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
    return copy_text("device_describe",
                     text(properties->name, ", ", properties->arch, ", ", properties->multiprocessors,
                          device.backend == TY_CPU ? " cores" : " multiprocessors"),
                     out, size);
  });
}

ty_status ty_workspace_create(ty_device device, void* memory, size_t bytes, void* stream,
                              ty_workspace** workspace) {
  return guarded([&] { return create_workspace(device, memory, bytes, stream, workspace); });
}

void ty_workspace_destroy(ty_workspace* workspace) { delete workspace; }

int64_t ty_align_capacity(int64_t num_pairs, int32_t experts, int32_t block_size) {
  return align::capacity(num_pairs, experts, block_size);
}

int64_t ty_align_min_capacity(int64_t num_pairs, int32_t experts, int32_t block_size) {
  return align::min_capacity(num_pairs, experts, block_size);
}

ty_status ty_align_workspace_size(ty_device device, const ty_align_args* args, size_t* bytes) {
  return guarded([&]() -> Status {
    Call<align::Problem> call;
    TY_RETURN_IF_ERROR(expect_place("align_workspace_size", bytes));
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    *bytes = call.backend->align.workspace_size(*call.device, call.problem);
    return {};
  });
}

ty_status ty_align(ty_device device, const ty_align_args* args, ty_workspace* workspace, void* stream) {
  return guarded([&]() -> Status {
    Call<align::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kRequired, call));
    Workspace memory;
    const size_t needed = call.backend->align.workspace_size(*call.device, call.problem);
    TY_RETURN_IF_ERROR(check_workspace("align", device, workspace, needed, memory));
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    return call.backend->align.run(*call.device, call.problem, memory, stream);
  });
}

ty_status ty_align_once_size(ty_device device, const ty_align_args* args, size_t* bytes) {
  return guarded([&]() -> Status {
    TY_RETURN_IF_ERROR(expect_place("align_once_size", bytes));
    Call<align::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    *bytes = once(call);
    return {};
  });
}

ty_status ty_align_once(ty_device device, const ty_align_args* args, void* memory, size_t bytes,
                        void* stream) {
  return guarded([&]() -> Status {
    Call<align::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kRequired, call));
    const size_t needed = once(call);
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    TY_RETURN_IF_ERROR(clear_memory("align", *call.backend->runtime, memory, bytes, needed, stream));
    return call.backend->align.run(*call.device, call.problem, {memory, needed}, stream);
  });
}

ty_status ty_align_explain(ty_device device, const ty_align_args* args, char* out, size_t size) {
  return guarded([&]() -> Status {
    Call<align::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));  // whose room counts
    return copy_text("align_explain", call.backend->align.explain(*call.device, call.problem), out, size);
  });
}

ty_status ty_gate(ty_device device, const ty_gate_args* args, void* stream) {
  return guarded([&]() -> Status {
    Call<gate::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kRequired, call));
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    return gate::run(*call.backend, *call.device, call.problem, stream);
  });
}

ty_status ty_gate_explain(ty_device device, const ty_gate_args* args, char* out, size_t size) {
  return guarded([&]() -> Status {
    Call<gate::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    return copy_text("gate_explain", call.backend->gate.explain(*call.device, call.problem), out, size);
  });
}

ty_status ty_route_workspace_size(ty_device device, const ty_route_args* args, size_t* bytes) {
  return guarded([&]() -> Status {
    Call<route::Problem> call;
    TY_RETURN_IF_ERROR(expect_place("route_workspace_size", bytes));
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    *bytes = route::workspace_size(*call.backend, *call.device, call.problem);
    return {};
  });
}

ty_status ty_route(ty_device device, const ty_route_args* args, ty_workspace* workspace, void* stream) {
  return guarded([&]() -> Status {
    Call<route::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kRequired, call));
    Workspace memory;
    const size_t needed = route::workspace_size(*call.backend, *call.device, call.problem);
    TY_RETURN_IF_ERROR(check_workspace("route", device, workspace, needed, memory));
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    return route::run(*call.backend, *call.device, call.problem, memory, stream);
  });
}

ty_status ty_route_once_size(ty_device device, const ty_route_args* args, size_t* bytes) {
  return guarded([&]() -> Status {
    TY_RETURN_IF_ERROR(expect_place("route_once_size", bytes));
    Call<route::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    *bytes = once(call);
    return {};
  });
}

ty_status ty_route_once(ty_device device, const ty_route_args* args, void* memory, size_t bytes,
                        void* stream) {
  return guarded([&]() -> Status {
    Call<route::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kRequired, call));
    const size_t needed = once(call);
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    TY_RETURN_IF_ERROR(clear_memory("route", *call.backend->runtime, memory, bytes, needed, stream));
    return route::run(*call.backend, *call.device, call.problem, {memory, needed}, stream);
  });
}

ty_status ty_route_explain(ty_device device, const ty_route_args* args, char* out, size_t size) {
  return guarded([&]() -> Status {
    Call<route::Problem> call;
    TY_RETURN_IF_ERROR(prepare(device, args, Pointers::kMayBeNull, call));
    TY_RETURN_IF_ERROR(call.backend->runtime->set_device(device.ordinal));
    return copy_text("route_explain", route::explain(*call.backend, *call.device, call.problem), out, size);
  });
}

ty_status ty_gate_backward(ty_device device, const ty_gate_backward_args* args, void* stream) {
  return guarded([&] { return run_training(device, args, &TrainingOperations::gate_backward, stream); });
}

ty_status ty_router_loss(ty_device device, const ty_router_loss_args* args, void* stream) {
  return guarded([&] { return run_training(device, args, &TrainingOperations::router_loss, stream); });
}

ty_status ty_balance(ty_device device, const ty_balance_args* args, void* stream) {
  return guarded([&] { return run_training(device, args, &TrainingOperations::balance, stream); });
}

}  // extern "C"
