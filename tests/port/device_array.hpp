// An array in a device's memory, for the length of a test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "runtime/runtime.hpp"

namespace tokenyard::tests {

template <class T>
class DeviceArray {
 public:
  DeviceArray(Runtime& runtime, const std::vector<T>& values) : runtime_(runtime), size_(values.size()) {
    void* memory = nullptr;
    check(runtime_.allocate(bytes(), &memory));
    data_ = static_cast<T*>(memory);
    check(runtime_.copy_to_device(data_, values.data(), bytes()));
  }
  DeviceArray(Runtime& runtime, size_t size) : DeviceArray(runtime, std::vector<T>(size)) {}
  ~DeviceArray() { check(runtime_.free(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }

  // Waits for the default stream first.
  std::vector<T> values() const {
    std::vector<T> out(size_);
    check(runtime_.synchronize(nullptr));
    check(runtime_.copy_to_host(out.data(), data_, bytes()));
    return out;
  }

 private:
  static void check(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }
  size_t bytes() const { return size_ * sizeof(T); }

  Runtime& runtime_;
  size_t size_;
  T* data_ = nullptr;
};

}  // namespace tokenyard::tests
