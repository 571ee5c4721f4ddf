#include "gate/run.hpp"

#include <cstddef>
#include <cstdint>

namespace tokenyard::gate {
namespace {

// Counts are added up by the tokens as they come.
Status clear_counts(Runtime& runtime, const Problem& problem, Stream stream) {
  const auto clear = [&](int32_t* counts, int32_t size) {
    if (counts == nullptr) return Status();
    return runtime.fill(counts, 0, static_cast<size_t>(size) * sizeof(int32_t), stream);
  };
  TY_RETURN_IF_ERROR(clear(problem.counts, problem.num_experts));
  return clear(problem.physical_counts, problem.num_physical_experts);
}

}  // namespace

Status run(const Backend& backend, const DeviceProperties& device, const Problem& problem, Stream stream) {
  TY_RETURN_IF_ERROR(clear_counts(*backend.runtime, problem, stream));
  if (problem.num_tokens == 0) return {};
  return backend.gate.run(device, problem, stream);
}

}  // namespace tokenyard::gate
