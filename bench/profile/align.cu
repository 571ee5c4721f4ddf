// Runs align once, for the profiler, and checks what came out: tokenyard_profile --path grid --tokens 4096
//
// Nsight Compute (2025.3.1) ends a kernel with an illegal instruction if it was launched cooperatively, in
// clusters, and reaches into a neighbour's shared memory; each two of the three it can do. So the kernels of
// the grid path are launched here as they are, but not cooperatively: that all of their blocks are resident
// is then not the driver's promise, but certain on a card that runs nothing else.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>

#include "align/launch.hpp"
#include "harness/align_run.hpp"
#include "harness/problem.hpp"
#include "port/cuda.hpp"
#include "port/cuda_runtime.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"
#include "tuning/align.hpp"

namespace tokenyard {
namespace {

template <class Kernel>
struct Alone : Kernel {
  static constexpr bool cooperative = false;
};

// Only what would be cooperative is compiled once more.
struct AlonePort : port::cuda::Port {
  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, void* stream, bool linked) {
    if constexpr (Kernel::cooperative) {
      return port::cuda::Port::launch(Alone<Kernel>{kernel}, blocks, stream, linked);
    } else {
      return {TY_UNSUPPORTED, "profile: the grid path alone is launched here"};
    }
  }
  template <class Kernel>
  static Status resident_blocks(int multiprocessors, int& blocks) {
    if constexpr (Kernel::cooperative) {
      return port::cuda::Port::resident_blocks<Alone<Kernel>>(multiprocessors, blocks);
    } else {
      return {TY_UNSUPPORTED, "profile: the grid path alone is launched here"};
    }
  }
};

Status run(const DeviceProperties& device, const align::Problem& problem, Workspace workspace,
           Stream stream) {
  const align::Plan chosen = align::plan(device, tuning::kHopper, problem);
  if (chosen.path != TY_ALIGN_GRID || device.max_cluster == 1) {
    return cuda_backend().align.run(device, problem, workspace, stream);
  }
  using Launches = align::Launches<AlonePort, tuning::kHopper, align::PlainIds, false>;
  return Launches::run(chosen, {device, problem, workspace, stream});
}

int run_once(ty_align_path path, const harness::AlignShape& shape) {
  constexpr int32_t kAlone = 100;
  Backend alone = cuda_backend();
  alone.id = kAlone;
  alone.align.run = run;
  add_backend(alone);
  const harness::AlignProblem problem = harness::draw(shape);
  harness::AlignOutputs outputs;
  const Status status =
      harness::run_align({kAlone, 0}, problem, {.path = path, .optional_outputs = false}, outputs);
  const std::string wrong =
      status.ok() ? harness::difference(outputs, harness::required_outputs(harness::expected(problem)))
                  : status.message();
  std::printf("%s\n", wrong.empty() ? "right" : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tokenyard

int main(int argc, char** argv) {
  using namespace tokenyard;
  CLI::App app("Run align once on the first card.");
  ty_align_path path = TY_ALIGN_AUTO;
  harness::AlignShape shape{.tokens = 4096, .top_k = 8, .experts = 256};
  app.add_option("--path", path)
      ->transform(CLI::CheckedTransformer(std::map<std::string, ty_align_path>{
          {"everywhere", TY_ALIGN_EVERYWHERE}, {"grid", TY_ALIGN_GRID}, {"split", TY_ALIGN_SPLIT}}));
  app.add_option("--tokens", shape.tokens);
  app.add_option("--top-k", shape.top_k);
  app.add_option("--experts", shape.experts);
  app.add_option("--block", shape.block);
  CLI11_PARSE(app, argc, argv);
  return run_once(path, shape);
}
