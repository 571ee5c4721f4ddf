// What the tests of this folder share: a GPU with its streams.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "device.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {

inline const std::vector<std::string> kGpus{"cuda", "hip"};

class Streams {
 public:
  Streams(Runtime& runtime, size_t count) : runtime_(runtime), streams_(count) {
    for (Stream& stream : streams_) require(runtime_.create_stream(&stream));
  }
  ~Streams() {
    for (Stream stream : streams_) static_cast<void>(runtime_.destroy_stream(stream));
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Stream operator[](size_t i) const { return streams_[i]; }

  void synchronize() const {
    for (Stream stream : streams_) require(runtime_.synchronize(stream));
  }

 private:
  Runtime& runtime_;
  std::vector<Stream> streams_;
};

// A test on each GPU and path.
class OnGpu : public testing::TestWithParam<std::tuple<std::string, ty_align_path>> {
 protected:
  void SetUp() override {
    TY_SKIP_IF_MISSING(device);
    runtime = find_backend(device)->runtime;
    require(runtime->set_device(0));
  }

  const std::string device = std::get<0>(GetParam());
  const harness::AlignOptions options{.path = std::get<1>(GetParam())};
  Runtime* runtime = nullptr;
};

inline std::string gpu_and_path(const testing::TestParamInfo<OnGpu::ParamType>& info) {
  return std::get<0>(info.param) + "_" + path_name(std::get<1>(info.param));
}

}  // namespace tokenyard::test
