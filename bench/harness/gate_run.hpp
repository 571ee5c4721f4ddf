// Runs gate on a device through the C ABI, with poisoned, guarded buffers, and checks what came out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/call_memory.hpp"
#include "harness/gate_problem.hpp"
#include "runtime/backend.hpp"
#include "runtime/status.hpp"

namespace tokenyard::harness {

// Every output of gate, on the host, whole.
struct GateOutputs {
  std::vector<int64_t> ids;                      // [tokens, columns]
  std::vector<float> weights;                    // likewise
  std::vector<int32_t> counts, physical_counts;  // empty if not wanted
};

// "" if equal to the last bit, else the first difference: "weights[3, 1] is 0.25, expected 0.5".
std::string difference(const GateOutputs& got, const GateOutputs& want);

// "" if the outputs are what the contract says, checked against the float64 reference: ids exactly where
// selection values differ by more than float32 may lose, weights to a relative 1e-5.
std::string broken_promise(const GateProblem& problem, const GateOutputs& outputs);

// The same, quickly, where another device's outputs are known to be right: tokens that differ from them, by
// more than devices' arithmetic does, are checked as above.
std::string mistake(const GateProblem& problem, const GateOutputs& got, const GateOutputs& right);

struct GateOptions {
  int32_t lanes = 0;
  bool optional_outputs = true;  // counts and physical_counts
  int misalignment = 0;          // elements by which every buffer is moved off its 256-byte alignment
  Stream stream = nullptr;       // fills memory: see AlignOptions
};

// Device memory for one problem. Buffers end in guard words; outputs and guards are poisoned.
class GateRun {
 public:
  static Status create(ty_device device, const GateProblem& problem, const GateOptions& options,
                       std::optional<GateRun>& run);

  Status poison() { return memory_.poison(); }                    // outputs and guards
  Status set_logits(const std::vector<float>& logits);            // others of the same shape, in place
  Status launch(Stream stream) { return launch(stream, *this); }  // enqueues ty_gate
  Status launch(Stream stream, const GateRun& inputs);  // with the logits of another one of the same shape
  Status collect(GateOutputs& outputs);                 // after a synchronise; also checks the guards

  const ty_gate_args& args() const { return args_; }

 private:
  Status set_inputs(const GateProblem& problem);
  Status allocate_outputs(const GateProblem& problem, bool optional_outputs);

  ty_device device_{};
  GateShape shape_;
  CallMemory memory_;
  ty_gate_args args_ = TY_GATE_ARGS_INIT;
};

// The call that a shape makes, without memory.
ty_gate_args gate_args(const GateShape& shape);

// All of it: create, launch, wait, collect.
Status run_gate(ty_device device, const GateProblem& problem, const GateOptions& options,
                GateOutputs& outputs);

}  // namespace tokenyard::harness
