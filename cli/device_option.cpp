#include "device_option.hpp"

#include <fmt/format.h>

#include <charconv>

#include "failure.hpp"
#include "handle.hpp"

namespace tokenyard::cli {
namespace {

std::string describe(ty_device id) {
  char text[256];
  require(ty_device_describe(id, text, sizeof text));
  return text;
}

int32_t parse_ordinal(const std::string& name, const std::string& digits) {
  int32_t ordinal = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, ordinal);
  if (error != std::errc() || rest != end) {
    throw wrong_usage(fmt::format("--device is {}, expected a number after the colon, as in cuda:1", name));
  }
  return ordinal;
}

Device open(ty_device id) {
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  require(find_device(id, &backend, &properties));
  require(backend->runtime->set_device(id.ordinal));
  const std::string ordinal = id.ordinal == 0 ? "" : fmt::format(":{}", id.ordinal);
  Stream stream = nullptr;
  require(backend->runtime->create_stream(&stream));
  return {id, backend, fmt::format("{}{}: {}", backend->name, ordinal, describe(id)), "",
          owned(*backend->runtime, stream, &Runtime::destroy_stream)};
}

}  // namespace

const Choices<int32_t>& backend_choices() {
  static const Choices<int32_t> choices{{"cpu", TY_CPU},
                                        {"cuda", TY_CUDA},
                                        {"hip", TY_HIP},
                                        {"simt32", kBackendSimt32},
                                        {"simt64", kBackendSimt64}};
  return choices;
}

std::string why_missing(int32_t id) {
  const Backend* backend = find_backend(id);
  if (backend == nullptr) return "not in this build";
  return backend->runtime->device_count() > 0 ? "" : "no device answers";
}

CLI::Option* add_device_option(CLI::App& command, std::string& name) {
  return command
      .add_option("--device", name,
                  "best, cpu, cuda, hip (cuda:1 for the second),\n"
                  "or simt32, simt64: the kernels, simulated")
      ->type_name("NAME")
      ->capture_default_str();
}

Device open_device(const std::string& name) {
  if (name == "best") {
    Device device = open(ty_best_device());
    if (!device.is_gpu()) {
      device.why_not_best = fmt::format("no GPU: cuda {}, hip {}", why_missing(TY_CUDA), why_missing(TY_HIP));
    }
    return device;
  }
  const size_t colon = name.find(':');
  const int32_t ordinal = colon == std::string::npos ? 0 : parse_ordinal(name, name.substr(colon + 1));
  for (const auto& [word, id] : backend_choices()) {
    if (word == name.substr(0, colon)) return open({id, ordinal});
  }
  throw wrong_usage(fmt::format("--device is {}, expected best, {}: see tokenyard info", name,
                                words(backend_choices(), ", ")));
}

const Choices<ty_align_path>& path_choices() {
  static const Choices<ty_align_path> choices{{"auto", TY_ALIGN_AUTO},
                                              {"everywhere", TY_ALIGN_EVERYWHERE},
                                              {"grid", TY_ALIGN_GRID},
                                              {"split", TY_ALIGN_SPLIT}};
  return choices;
}

void expect_path(const Device& device, ty_align_path path) {
  if (!device.is_cpu() || path == TY_ALIGN_AUTO) return;
  throw wrong_usage(fmt::format("--path is {}, expected auto on {}: only kernels have paths",
                                word_of(path_choices(), path), device.backend->name));
}

CLI::Option* add_path_option(CLI::App& command, std::optional<ty_align_path>& path,
                             const std::string& description) {
  return add_choice(command, "--path", path_choices(), path, description);
}

}  // namespace tokenyard::cli
