#include "harness/call_memory.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/backend.hpp"

namespace tokenyard::harness {

Status CallMemory::open(ty_device device, int misalignment, Stream stream) {
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  runtime_ = backend->runtime;
  misalignment_ = misalignment;
  stream_ = stream;
  return runtime_->set_device(device.ordinal);
}

Status CallMemory::add(const char* name, Kind kind, size_t element_bytes, size_t bytes, Bytes contents,
                       void** address) {
  Buffer buffer{name, kind, {}, std::move(contents)};
  TY_RETURN_IF_ERROR(GuardedBuffer::create(
      *runtime_, name, bytes, static_cast<size_t>(misalignment_) * element_bytes, buffer.memory, stream_));
  if (kind != Kind::kOutput) TY_RETURN_IF_ERROR(buffer.memory.write(buffer.contents.data()));
  *address = buffer.memory.data();
  buffers_.push_back(std::move(buffer));
  return {};
}

Status CallMemory::input(const char* name, size_t element_bytes, Bytes contents, const void** address) {
  void* where = nullptr;
  const size_t bytes = contents.size();
  TY_RETURN_IF_ERROR(add(name, Kind::kInput, element_bytes, bytes, std::move(contents), &where));
  *address = where;
  return {};
}

Status CallMemory::output(const char* name, size_t element_bytes, size_t elements, void** address) {
  return add(name, Kind::kOutput, element_bytes, elements * element_bytes, {}, address);
}

Status CallMemory::changed_in_place(const char* name, size_t element_bytes, Bytes contents, void** address) {
  const size_t bytes = contents.size();
  return add(name, Kind::kChangedInPlace, element_bytes, bytes, std::move(contents), address);
}

Status CallMemory::replace(const void* input, Bytes contents) {
  for (Buffer& buffer : buffers_) {
    if (buffer.memory.data() != input) continue;
    buffer.contents = std::move(contents);
    return buffer.memory.write(buffer.contents.data());
  }
  return {TY_INVALID_ARGUMENT, "no input is there, expected an address that was handed out"};
}

Status CallMemory::poison() {
  for (Buffer& buffer : buffers_) {
    if (buffer.kind == Kind::kInput) continue;
    TY_RETURN_IF_ERROR(buffer.memory.poison());
    if (buffer.kind == Kind::kChangedInPlace) TY_RETURN_IF_ERROR(buffer.memory.write(buffer.contents.data()));
  }
  return {};
}

Status CallMemory::check() const {
  for (const Buffer& buffer : buffers_) {
    Bytes now(buffer.memory.size());
    TY_RETURN_IF_ERROR(buffer.memory.read(now.data()));
    if (buffer.kind == Kind::kInput && now != buffer.contents) {
      return {TY_DEVICE_ERROR, fmt::format("the input {} was changed, expected it untouched", buffer.name)};
    }
  }
  return {};
}

Status CallMemory::read(const void* address, Bytes& contents) const {
  contents.clear();
  for (const Buffer& buffer : buffers_) {
    if (buffer.memory.data() != address) continue;
    contents.resize(buffer.memory.size());
    return buffer.memory.read(contents.data());
  }
  return {};
}

}  // namespace tokenyard::harness
