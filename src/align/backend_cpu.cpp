// The CPU's row in the table of backends.
#include <string>

#include "align/cpu.hpp"
#include "port/cpu_runtime.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"

namespace tokenyard {
namespace {

size_t align_workspace_size(const DeviceProperties&, const align::Problem&) { return 0; }

Status run_align(const DeviceProperties& cpu, const align::Problem& problem, Workspace, Stream) {
  align::sort_on_cpu(problem, align::cpu_threads(problem, cpu.multiprocessors));
  return {};
}

std::string explain_align(const DeviceProperties& cpu, const align::Problem& problem) {
  const int threads = align::cpu_threads(problem, cpu.multiprocessors);
  return text("cpu: counting sort on ", threads, " of ", cpu.multiprocessors, " cores: ", problem.num_pairs(),
              threads < cpu.multiprocessors ? " pairs do not pay for the start of more threads" : " pairs");
}

}  // namespace

const Backend& cpu_backend() {
  static const Backend row{TY_CPU, "cpu", &cpu_runtime(), {align_workspace_size, run_align, explain_align}};
  return row;
}

}  // namespace tokenyard
