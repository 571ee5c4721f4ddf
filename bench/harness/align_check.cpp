// What align's outputs must be: by the reference, and sentence by sentence from the contract.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "align/reference.hpp"
#include "harness/align_run.hpp"

namespace tokenyard::harness {
namespace {

std::string first_difference(const char* name, const std::vector<int32_t>& got,
                             const std::vector<int32_t>& want) {
  if (got.size() != want.size()) {
    return fmt::format("{} has {} entries, expected {}", name, got.size(), want.size());
  }
  const auto [at, wanted] = std::mismatch(got.begin(), got.end(), want.begin());
  if (at == got.end()) return "";
  return fmt::format("{}[{}] is {}, expected {} (of {})", name, at - got.begin(), *at, *wanted, got.size());
}

std::string first_difference(const char* name, int32_t got, int32_t want) {
  return got == want ? "" : fmt::format("{} is {}, expected {}", name, got, want);
}

constexpr int32_t kDropped = -1;

// The contract's sentences, each a function that returns "" or how it is broken. A sentence may rely on
// those before it.
class Promises {
 public:
  Promises(const AlignProblem& problem, const AlignOutputs& outputs)
      : problem_(problem),
        out_(outputs),
        block_(problem.shape.block),
        padding_(static_cast<int32_t>(problem.num_pairs())) {}

  std::string first_broken() const {
    for (const auto sentence :
         {&Promises::sizes, &Promises::num_padded, &Promises::used_blocks_have_ascending_experts,
          &Promises::unused_blocks_have_none, &Promises::pairs_stand_with_their_expert,
          &Promises::experts_pairs_ascend, &Promises::padding_only_ends_an_experts_run,
          &Promises::nothing_but_padding_beyond, &Promises::inverse_finds_each_pair,
          &Promises::dropped_pairs_are_counted, &Promises::counts_are_the_pairs_of_each_expert,
          &Promises::offsets_are_the_first_slots}) {
      if (std::string broken = (this->*sentence)(); !broken.empty()) return broken;
    }
    return "";
  }

 private:
  int32_t expert_of(int64_t pair) const {
    const int64_t id = problem_.ids[static_cast<size_t>(pair)];
    const int64_t first = problem_.shape.first_id;
    if (id < first || id >= first + problem_.shape.experts) return kDropped;
    if (problem_.expert_map.empty()) return static_cast<int32_t>(id - first);
    const int32_t local = problem_.expert_map[static_cast<size_t>(id)];
    return local < 0 || local >= problem_.num_local_experts() ? kDropped : local;
  }

  bool is_pair(int32_t entry) const { return entry >= 0 && entry < padding_; }
  int32_t entry(int64_t slot) const { return out_.sorted_pair_ids[static_cast<size_t>(slot)]; }
  int32_t expert_of_block(int64_t block) const {
    return out_.block_expert[static_cast<size_t>(block)] - problem_.shape.first_id;
  }
  int32_t expert_at(int64_t slot) const { return expert_of_block(slot / block_); }
  int64_t used_blocks() const { return out_.num_padded / block_; }

  std::string sizes() const {
    const auto experts = static_cast<size_t>(problem_.num_local_experts());
    const auto capacity = static_cast<size_t>(problem_.capacity);
    const auto blocks = static_cast<size_t>((problem_.capacity + block_ - 1) / block_);
    const auto all_right = out_.sorted_pair_ids.size() == capacity && out_.block_expert.size() == blocks &&
                           out_.block_rows.size() == blocks && out_.counts.size() == experts &&
                           out_.offsets.size() == experts + 1 && out_.inverse.size() == problem_.ids.size();
    return all_right ? "" : "outputs have the contract's shapes: one of them has not";
  }

  std::string num_padded() const {
    if (out_.num_padded >= 0 && out_.num_padded <= problem_.capacity && out_.num_padded % block_ == 0)
      return "";
    return fmt::format("num_padded is a multiple of {} up to the capacity of {}: it is {}", block_,
                       problem_.capacity, out_.num_padded);
  }

  std::string used_blocks_have_ascending_experts() const {
    int32_t previous = 0;
    for (int64_t block = 0; block < used_blocks(); ++block) {
      const int32_t expert = expert_of_block(block);
      if (expert < previous || expert >= problem_.num_local_experts()) {
        return fmt::format("blocks in use have experts in ascending order: block {} has {} after {}", block,
                           expert, previous);
      }
      previous = expert;
    }
    return "";
  }

  std::string unused_blocks_have_none() const {
    for (size_t block = static_cast<size_t>(used_blocks()); block < out_.block_expert.size(); ++block) {
      if (out_.block_expert[block] != -1 || out_.block_rows[block] != 0) {
        return fmt::format("blocks beyond num_padded have expert -1 and 0 rows: block {} has {} and {}",
                           block, out_.block_expert[block], out_.block_rows[block]);
      }
    }
    return "";
  }

  std::string pairs_stand_with_their_expert() const {
    for (int64_t slot = 0; slot < out_.num_padded; ++slot) {
      const int32_t pair = entry(slot);
      if (pair == padding_) continue;
      if (!is_pair(pair)) return fmt::format("slots hold pairs or T*K: slot {} holds {}", slot, pair);
      if (expert_of(pair) != expert_at(slot)) {
        return fmt::format("a pair stands in a block of its expert: pair {} of expert {} stands in one of {}",
                           pair, expert_of(pair), expert_at(slot));
      }
    }
    return "";
  }

  // Strictly, so that no pair stands twice.
  std::string experts_pairs_ascend() const {
    int32_t previous = -1;
    for (int64_t slot = 0; slot < out_.num_padded; ++slot) {
      if (slot > 0 && expert_at(slot) != expert_at(slot - 1)) previous = -1;
      if (!is_pair(entry(slot))) continue;
      if (entry(slot) <= previous) {
        return fmt::format("within an expert the pairs ascend: {} stands behind {}", entry(slot), previous);
      }
      previous = entry(slot);
    }
    return "";
  }

  std::string padding_only_ends_an_experts_run() const {
    for (int64_t block = 0; block < used_blocks(); ++block) {
      int64_t rows = 0;
      while (rows < block_ && is_pair(entry(block * block_ + rows))) ++rows;
      for (int64_t row = rows; row < block_; ++row) {
        if (is_pair(entry(block * block_ + row))) {
          return fmt::format("padding stands behind the pairs: block {} has a pair behind padding", block);
        }
      }
      const bool last_of_expert =
          block + 1 == used_blocks() || expert_at((block + 1) * block_) != expert_at(block * block_);
      if (rows == 0 || (rows < block_ && !last_of_expert)) {
        return fmt::format(
            "only an expert's last block has padding, and no block is all padding: block {} has {} rows",
            block, rows);
      }
      if (out_.block_rows[static_cast<size_t>(block)] != rows) {
        return fmt::format("block_rows counts the pairs in a block: block {} has {}, block_rows says {}",
                           block, rows, out_.block_rows[static_cast<size_t>(block)]);
      }
    }
    return "";
  }

  std::string nothing_but_padding_beyond() const {
    for (int64_t slot = out_.num_padded; slot < problem_.capacity; ++slot) {
      if (entry(slot) != padding_) {
        return fmt::format("slots beyond num_padded hold T*K = {}: slot {} holds {}", padding_, slot,
                           entry(slot));
      }
    }
    return "";
  }

  // For valid pairs this also says that each stands in the order.
  std::string inverse_finds_each_pair() const {
    for (int32_t pair = 0; pair < padding_; ++pair) {
      const int32_t slot = out_.inverse[static_cast<size_t>(pair)];
      const bool right = expert_of(pair) == kDropped
                             ? slot == -1
                             : slot >= 0 && slot < out_.num_padded && entry(slot) == pair;
      if (!right) {
        return fmt::format(
            "inverse is each valid pair's slot, -1 for the others: for pair {} of expert {} it is {}", pair,
            expert_of(pair), slot);
      }
    }
    return "";
  }

  std::string dropped_pairs_are_counted() const {
    int32_t dropped = 0;
    for (int32_t pair = 0; pair < padding_; ++pair) dropped += expert_of(pair) == kDropped;
    if (out_.num_dropped == dropped) return "";
    return fmt::format("num_dropped counts the pairs that are not valid: {}, not {}", dropped,
                       out_.num_dropped);
  }

  std::string counts_are_the_pairs_of_each_expert() const {
    std::vector<int32_t> counts(out_.counts.size(), 0);
    for (int32_t pair = 0; pair < padding_; ++pair) {
      if (expert_of(pair) != kDropped) ++counts[static_cast<size_t>(expert_of(pair))];
    }
    return first_difference("counts are the valid pairs of each expert: counts", out_.counts, counts);
  }

  std::string offsets_are_the_first_slots() const {
    int64_t slot = 0;
    for (size_t expert = 0; expert < out_.offsets.size(); ++expert) {
      if (out_.offsets[expert] != slot) {
        return fmt::format("offsets are the first slots of the experts: offsets[{}] is {}, expected {}",
                           expert, out_.offsets[expert], slot);
      }
      if (expert < out_.counts.size()) slot += (out_.counts[expert] + block_ - 1) / block_ * block_;
    }
    if (slot == out_.num_padded) return "";
    return fmt::format("the last offset is num_padded: {}, not {}", slot, out_.num_padded);
  }

  const AlignProblem& problem_;
  const AlignOutputs& out_;
  const int64_t block_;
  const int32_t padding_;  // T * K
};

}  // namespace

AlignOutputs expected(const AlignProblem& problem) {
  align::ReferenceOutput out =
      align::reference({problem.ids, problem.shape.first_id, problem.shape.experts, problem.shape.block,
                        problem.expert_map, problem.num_local_experts(), problem.capacity});
  return {.sorted_pair_ids = std::move(out.sorted_pair_ids),
          .block_expert = std::move(out.block_expert),
          .counts = std::move(out.counts),
          .offsets = std::move(out.offsets),
          .inverse = std::move(out.inverse),
          .block_rows = std::move(out.block_rows),
          .num_padded = out.num_padded,
          .num_dropped = out.num_dropped};
}

AlignOutputs required_outputs(AlignOutputs outputs) {
  AlignOutputs required;
  required.sorted_pair_ids = std::move(outputs.sorted_pair_ids);
  required.block_expert = std::move(outputs.block_expert);
  required.num_padded = outputs.num_padded;
  return required;
}

void sort_runs(AlignOutputs& outputs, const AlignOutputs& want) {
  if (outputs.sorted_pair_ids.size() != want.sorted_pair_ids.size()) return;  // difference() will say so
  for (size_t expert = 0; expert < want.counts.size(); ++expert) {
    const auto first = outputs.sorted_pair_ids.begin() + want.offsets[expert];
    std::sort(first, first + want.counts[expert]);
  }
}

std::string difference(const AlignOutputs& got, const AlignOutputs& want) {
  for (std::string found : {first_difference("num_padded", got.num_padded, want.num_padded),
                            first_difference("counts", got.counts, want.counts),
                            first_difference("offsets", got.offsets, want.offsets),
                            first_difference("sorted_pair_ids", got.sorted_pair_ids, want.sorted_pair_ids),
                            first_difference("block_expert", got.block_expert, want.block_expert),
                            first_difference("block_rows", got.block_rows, want.block_rows),
                            first_difference("inverse", got.inverse, want.inverse),
                            first_difference("num_dropped", got.num_dropped, want.num_dropped)}) {
    if (!found.empty()) return found;
  }
  return "";
}

std::string broken_promise(const AlignProblem& problem, const AlignOutputs& outputs) {
  return Promises(problem, outputs).first_broken();
}

}  // namespace tokenyard::harness
