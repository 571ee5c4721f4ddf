// --device and --path: where and how an operation runs.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "choice.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::cli {

struct Device {
  ty_device id;
  const Backend* backend;
  std::string description;   // "cuda: NVIDIA H200, sm_90, 132 multiprocessors"
  std::string why_not_best;  // where "best" had to take the CPU: why
  // All that a process times is on this one: see harness::AlignOptions.
  std::shared_ptr<void> timed_stream;

  Runtime& runtime() const { return *backend->runtime; }
  bool is_cpu() const { return id.backend == TY_CPU; }
  bool is_gpu() const { return id.backend == TY_CUDA || id.backend == TY_HIP; }
  bool is_simulated() const { return id.backend == kBackendSimt32 || id.backend == kBackendSimt64; }
};

// Every backend that there could be, by its name on the command line.
const Choices<int32_t>& backend_choices();

// "" if a backend has a device, else what is missing.
std::string why_missing(int32_t backend);

CLI::Option* add_device_option(CLI::App& command, std::string& name);

// The device of that name ("best", "cuda", "cuda:1"), made current for this thread.
Device open_device(const std::string& name);

const Choices<ty_align_path>& path_choices();
// Refuses a path where there is one way to run.
void expect_path(const Device& device, ty_align_path path);
CLI::Option* add_path_option(CLI::App& command, std::optional<ty_align_path>& path,
                             const std::string& description);

}  // namespace tokenyard::cli
