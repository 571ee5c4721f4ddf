#include "problem_options.hpp"

#include "align/contract.hpp"
#include "failure.hpp"
#include "harness/align_run.hpp"
#include "number.hpp"

namespace tokenyard::cli {

const Choices<harness::Distribution>& distribution_choices() {
  static const Choices<harness::Distribution> choices{{"uniform", harness::Distribution::kUniform},
                                                      {"zipf", harness::Distribution::kZipf},
                                                      {"hot", harness::Distribution::kHot},
                                                      {"one", harness::Distribution::kOneExpert}};
  return choices;
}

void add_problem_options(CLI::App& command, harness::AlignShape& shape) {
  const auto number = [&](const char* option, auto& target, const char* description,
                          Range<std::decay_t<decltype(target)>> range = {}) {
    return add_number(command, option, target, description, range)->group("Problem");
  };
  const auto flag = [&](const char* option, bool& target, const char* description) {
    command.add_flag(option, target, description)->group("Problem");
  };
  number("--tokens", shape.tokens, "T, rows of topk_ids [T, K]");
  number("--top-k", shape.top_k, "K, experts that each token chooses");
  number("--experts", shape.experts, "E, ids are 0 to E-1");
  number("--block", shape.block, "B, slots in a block: the matrix product's rows");
  add_choice(command, "--distribution", distribution_choices(), shape.distribution,
             "uniform, zipf (exponent 1.2), hot (one expert\nthat all tokens name) or one (all pairs on one)")
      ->group("Problem");
  number("--seed", shape.seed, "of everything that is drawn");
  flag("--int64", shape.int64_ids, "pass the ids as int64, as torch.topk gives them");
  number("--row-stride", shape.row_stride, "ids from one row to the next, 0: K");
  number("--first-id", shape.first_id, "the id of expert 0: ids are N to N+E-1");
  number("--local-experts", shape.local_experts, "draw an expert map to so many local experts", {.low = 0});
  number("--extra-capacity", shape.extra_capacity, "slots beyond what ty_align_capacity() says");
  flag("--invalid-ids", shape.invalid_ids, "a tenth of the ids negative or beyond E");
  flag("--duplicates", shape.duplicates, "a token may name an expert twice");
}

void check_shape(const harness::AlignShape& shape) {
  align::Problem problem;
  const ty_align_args args = harness::align_args(shape);
  require(align::check(&args, Pointers::kMayBeNull, problem));
}

}  // namespace tokenyard::cli
