#include "chain.hpp"

#include <utility>

#include "device.hpp"
#include "runs.hpp"

namespace tokenyard::test {
namespace {

// Slots for ids, one a token: pairs' indices below 600 are experts, the others are dropped.
harness::AlignProblem of_slots(const std::vector<int32_t>& slots) {
  return harness::from_ids(
      {.tokens = static_cast<int64_t>(slots.size()), .top_k = 1, .experts = 600, .block = 2},
      {slots.begin(), slots.end()});
}

std::vector<harness::AlignProblem> calls_of(const harness::AlignProblem& first, size_t count) {
  std::vector<harness::AlignProblem> calls{first};
  while (calls.size() < count) calls.push_back(of_slots(harness::expected(calls.back()).sorted_pair_ids));
  return calls;
}

}  // namespace

Chain::Chain(const std::string& device, const harness::AlignProblem& first,
             const harness::AlignOptions& options)
    : device_(device), optional_outputs_(options.optional_outputs) {
  for (const harness::AlignProblem& call : calls_of(first, kCalls)) {
    runs_.push_back(create(device, call, options));
  }
  set_ids(first);
}

void Chain::set_ids(const harness::AlignProblem& first) {
  require(runs_.front().set_ids(first.ids));
  wanted_.clear();
  for (const harness::AlignProblem& call : calls_of(first, kCalls)) {
    harness::AlignOutputs want = harness::expected(call);
    wanted_.push_back(optional_outputs_ ? std::move(want) : harness::required_outputs(std::move(want)));
  }
}

void Chain::poison() {
  for (harness::AlignRun& run : runs_) require(run.poison());
}

Status Chain::launch(Stream stream) {
  const void* ids = runs_.front().args().topk_ids;
  for (const harness::AlignRun& run : runs_) {
    ty_align_args args = run.args();
    args.topk_ids = ids;
    const ty_status code = ty_align(device_id(device_), &args, run.workspace(), stream);
    if (code != TY_OK) return {code, ty_last_error()};
    ids = args.sorted_pair_ids;
  }
  return {};
}

std::string Chain::difference() {
  for (size_t i = 0; i < runs_.size(); ++i) {
    const std::string found = harness::difference(collected(runs_[i]), wanted_[i]);
    if (!found.empty()) return "call " + std::to_string(i) + ": " + found;
  }
  return "";
}

}  // namespace tokenyard::test
