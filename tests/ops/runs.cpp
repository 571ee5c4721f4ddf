#include "runs.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

#include "device.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::test {

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

harness::AlignRun create(const std::string& device, const harness::AlignProblem& problem,
                         const harness::AlignOptions& options) {
  std::optional<harness::AlignRun> run;
  require(harness::AlignRun::create(device_id(device), problem, options, run));
  return std::move(*run);
}

harness::AlignOutputs collected(harness::AlignRun& run) {
  harness::AlignOutputs outputs;
  require(run.collect(outputs));
  return outputs;
}

harness::AlignOutputs launched(const std::string& device, harness::AlignRun& run) {
  require(run.poison());
  require(run.launch(nullptr));
  require(find_backend(device)->runtime->synchronize(nullptr));
  return collected(run);
}

}  // namespace tokenyard::test
