#include "harness/guarded_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tokenyard::harness {
namespace {

constexpr unsigned char kPoison = 0xEE;
constexpr size_t kGuard = 256;

}  // namespace

Status GuardedBuffer::create(Runtime& runtime, std::string name, size_t bytes, size_t misalignment,
                             GuardedBuffer& buffer, Stream stream) {
  buffer = GuardedBuffer();
  buffer.name_ = std::move(name);
  buffer.front_ = kGuard + misalignment;
  buffer.bytes_ = bytes;
  TY_RETURN_IF_ERROR(runtime.allocate(buffer.front_ + bytes + kGuard, &buffer.memory_));
  buffer.runtime_ = &runtime;
  buffer.stream_ = stream;
  return buffer.poison();
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(stream_, other.stream_);
  std::swap(name_, other.name_);
  std::swap(memory_, other.memory_);
  std::swap(front_, other.front_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (runtime_ != nullptr) static_cast<void>(runtime_->free(memory_));
}

// Other streams do not wait for this one, so these wait for it.
Status GuardedBuffer::poison() {
  TY_RETURN_IF_ERROR(runtime_->fill(memory_, kPoison, front_ + bytes_ + kGuard, stream_));
  return runtime_->synchronize(stream_);
}

Status GuardedBuffer::write(const void* contents) {
  TY_RETURN_IF_ERROR(runtime_->copy_to_device(data(), contents, bytes_));
  return runtime_->synchronize(nullptr);
}

Status GuardedBuffer::read(void* contents) const {
  std::vector<unsigned char> whole(front_ + bytes_ + kGuard);
  TY_RETURN_IF_ERROR(runtime_->copy_to_host(whole.data(), memory_, whole.size()));
  const auto touched = [](unsigned char byte) { return byte != kPoison; };
  const auto behind = whole.begin() + static_cast<ptrdiff_t>(front_ + bytes_);
  auto at = std::find_if(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(front_), touched);
  if (at == whole.begin() + static_cast<ptrdiff_t>(front_)) at = std::find_if(behind, whole.end(), touched);
  if (at != whole.end()) {
    return {TY_DEVICE_ERROR,
            fmt::format("something wrote outside of {}: at byte {} of {}, expected only writes inside", name_,
                        at - whole.begin() - static_cast<ptrdiff_t>(front_), bytes_)};
  }
  if (bytes_ > 0) std::memcpy(contents, whole.data() + front_, bytes_);
  return {};
}

}  // namespace tokenyard::harness
