// Runs align on a device through the C ABI, with poisoned, guarded buffers, and compares what came out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/problem.hpp"
#include "runtime/backend.hpp"
#include "runtime/status.hpp"

namespace tokenyard::harness {

// Every output of align, on the host, whole.
struct AlignOutputs {
  std::vector<int32_t> sorted_pair_ids, block_expert, counts, offsets, inverse, block_rows;
  int32_t num_padded = 0, num_dropped = 0;

  bool operator==(const AlignOutputs&) const = default;
};

// What the sequential reference (src/align/reference.hpp) says.
AlignOutputs expected(const AlignProblem& problem);

// The outputs that are not optional, alone.
AlignOutputs required_outputs(AlignOutputs outputs);

// Sorts each expert's pairs in `outputs.sorted_pair_ids`, where `want` has them: what an order that is not
// stable must be equal to after that.
void sort_runs(AlignOutputs& outputs, const AlignOutputs& want);

// "" if equal, else the first difference: "sorted_pair_ids[17] is 5, expected 4 (of 1024)".
std::string difference(const AlignOutputs& got, const AlignOutputs& want);

// "" if `outputs` keep each sentence of the contract for `problem`, checked one by one from the definition
// (not by comparing with another implementation), else the sentence that does not hold.
std::string broken_promise(const AlignProblem& problem, const AlignOutputs& outputs);

struct AlignOptions {
  ty_align_path path = TY_ALIGN_AUTO;
  bool optional_outputs = true;  // counts, offsets, inverse, block_rows, num_dropped
  int misalignment = 0;          // elements by which every buffer is moved off its 256-byte alignment
  bool linked = false;           // launches may begin before the one before has ended
  // Fills and prepares memory, and is what run_align() launches on. Where time is taken it must be the stream
  // that is timed: an NVIDIA GPU takes some 0.17 µs more for every launch once kernels, fills being such,
  // have run on two streams in turn.
  Stream stream = nullptr;
};

// Device memory for one problem. Buffers end in guard words; outputs, guards and workspace are poisoned.
class AlignRun {
 public:
  static Status create(ty_device device, const AlignProblem& problem, const AlignOptions& options,
                       std::optional<AlignRun>& run);
  AlignRun(AlignRun&&) noexcept;
  AlignRun& operator=(AlignRun&&) noexcept;
  ~AlignRun();

  Status poison();                                  // outputs and guards
  Status set_ids(const std::vector<int64_t>& ids);  // other routing of the same shape, in place
  Status launch(Stream stream);                     // enqueues ty_align
  Status collect(AlignOutputs& outputs);            // after a synchronise; also checks the guards

  const ty_align_args& args() const;
  ty_workspace* workspace() const;  // nullptr if none is needed

 private:
  AlignRun();
  struct State;
  std::unique_ptr<State> state_;
};

// The call that a shape makes, without memory.
ty_align_args align_args(const AlignShape& shape, ty_align_path path = TY_ALIGN_AUTO);

// All of it: create, launch, wait, collect.
Status run_align(ty_device device, const AlignProblem& problem, const AlignOptions& options,
                 AlignOutputs& outputs);

}  // namespace tokenyard::harness
