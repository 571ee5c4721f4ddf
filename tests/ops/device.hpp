// The devices that every test of an operation runs on, by name, whether this machine has them or not.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/align_run.hpp"

namespace tokenyard::test {

inline constexpr const char* kReference =
    "reference";  // the specification, held to the contract like the rest
inline const std::vector<std::string> kAllDevices{kReference, "cpu", "simt32", "simt64", "cuda", "hip"};
inline const std::vector<std::string> kRealDevices{"cpu", "simt32", "simt64", "cuda", "hip"};
inline const std::vector<std::string> kKernelDevices{"simt32", "simt64", "cuda", "hip"};

// "" if the device is there, else why not.
std::string why_missing(const std::string& device);

ty_device device_id(const std::string& device);

// The paths that a device tells apart: one on the CPU, four elsewhere.
std::vector<ty_align_path> paths_of(const std::string& device);

const char* path_name(ty_align_path path);

}  // namespace tokenyard::test

#define TY_SKIP_IF_MISSING(device)                                                 \
  do {                                                                             \
    const std::string ty_why = ::tokenyard::test::why_missing(device);             \
    if (!ty_why.empty()) GTEST_SKIP() << (device) << " is not tested: " << ty_why; \
  } while (false)
