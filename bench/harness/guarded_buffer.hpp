// Device memory between two guards, whose content the host knows before a launch: what was written where
// nothing should have been shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/runtime.hpp"
#include "runtime/status.hpp"

namespace tokenyard::harness {

class GuardedBuffer {
 public:
  // `bytes` between guards of poison, `misalignment` bytes off the 256 that an allocation is aligned to.
  // Filled on `stream`: see AlignOptions.
  static Status create(Runtime& runtime, std::string name, size_t bytes, size_t misalignment,
                       GuardedBuffer& buffer, Stream stream = nullptr);
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&&) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) noexcept;
  ~GuardedBuffer();

  void* data() const { return static_cast<char*>(memory_) + front_; }
  size_t size() const { return bytes_; }

  Status poison();                     // all of it
  Status write(const void* contents);  // all between the guards

  // Copies what is between the guards, or says which guard was written to.
  Status read(void* contents) const;

 private:
  Runtime* runtime_ = nullptr;
  Stream stream_ = nullptr;
  std::string name_;
  void* memory_ = nullptr;
  size_t front_ = 0;  // bytes of the guard in front
  size_t bytes_ = 0;
};

}  // namespace tokenyard::harness
