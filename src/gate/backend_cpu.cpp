// gate on the CPU.
#include <string>

#include "gate/contract.hpp"
#include "gate/cpu.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"

namespace tokenyard::gate {
namespace {

Status run(const DeviceProperties& cpu, const Problem& problem, Stream) {
  choose_on_cpu(problem, cpu_threads(problem, cpu.multiprocessors));
  return {};
}

std::string explain(const DeviceProperties& cpu, const Problem& problem) {
  const int threads = cpu_threads(problem, cpu.multiprocessors);
  return text("cpu: partial sort of each row on ", threads, " of ", cpu.multiprocessors,
              " cores: ", problem.num_tokens, " rows of ", problem.num_experts,
              threads < cpu.multiprocessors ? " do not pay for the start of more threads" : "");
}

}  // namespace

GateOperation cpu_operation() { return {run, explain}; }

}  // namespace tokenyard::gate
