// What gate's outputs must be, token by token, from the float64 reference.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "harness/gate_run.hpp"

namespace tokenyard::harness {
namespace {

constexpr double kRelative = 1e-5;  // of weights

// The distance between float32 numbers around a magnitude.
double ulp(double magnitude) {
  int exponent = 0;
  std::frexp(std::max(magnitude, 0x1p-126), &exponent);
  return std::ldexp(1, exponent - 24);
}

class RowCheck {
 public:
  RowCheck(const gate::ReferenceInput& input, int64_t token)
      : input_(input), token_(token), row_(gate::reference_row(input, token)) {}

  // The experts that a token's first K ids stand for, or {} if there is one that stands for none.
  std::vector<int32_t> experts(const int64_t* ids) const {
    std::vector<int32_t> found;
    for (size_t k = 0; k < row_.chosen.size(); ++k) {
      const int32_t expert = expert_of(ids[k], row_.chosen[k]);
      if (expert < 0) return {};
      found.push_back(expert);
    }
    return found;
  }

  bool is_a_right_choice(const std::vector<int32_t>& chosen) const {
    if (chosen == row_.chosen) return true;
    if (!is_rounded()) return false;
    if (std::set(chosen.begin(), chosen.end()).size() != chosen.size()) return false;
    if (is_in_order(chosen, row_.kept_groups)) return true;
    if (input_.num_groups == 1) return false;
    const std::vector<int32_t> kept = likely_kept_groups(chosen);
    return are_the_best(kept) && is_in_order(chosen, kept);
  }

  std::string wrong_weight(const std::vector<int32_t>& chosen, const float* weights) const {
    const std::vector<double> want = gate::reference_weights(input_, token_, chosen);
    for (size_t column = 0; column < want.size(); ++column) {
      const double got = weights[column];
      const double allowed = kRelative * std::fabs(want[column]) + lost_below_normal(chosen);
      if (!(std::fabs(got - want[column]) <= allowed)) {
        return fmt::format("weights[{}, {}] is {}, expected {} to a relative {}", token_, column, got,
                           want[column], kRelative);
      }
    }
    return "";
  }

  std::string expected_ids() const {
    std::string text;
    for (const int32_t expert : row_.chosen) {
      text += fmt::format(" {}", gate::reference_physical(input_, token_, expert));
    }
    return text;
  }

 private:
  int32_t expert_of(int64_t id, int32_t guess) const {
    if (gate::reference_physical(input_, token_, guess) == id) return guess;
    for (int32_t expert = 0; expert < input_.num_experts; ++expert) {
      if (gate::reference_physical(input_, token_, expert) == id) return expert;
    }
    return -1;
  }

  // Without a bias the selection values are the logits themselves, and the order is exact.
  bool is_rounded() const {
    return !input_.bias.empty() || (input_.num_groups > 1 && input_.group_score == TY_GATE_GROUP_TOP2);
  }

  double selection(int32_t expert) const { return row_.selection[static_cast<size_t>(expert)]; }

  // Two selection values count as different when they differ by more than 4 ulp, and by more than a number
  // that may have counted as 0.
  double blur(int32_t expert) const {
    if (input_.bias.empty()) return 0;
    const double value = std::fabs(selection(expert));
    const double score = row_.score[static_cast<size_t>(expert)];
    return std::isinf(value) ? 0 : std::max(4 * ulp(std::max(value, score)), 0x1p-126);
  }

  bool is_above(double a, double b, double blur) const {
    return a > b && (std::isinf(a - b) || a - b > blur);
  }

  bool is_in_order(const std::vector<int32_t>& chosen, const std::vector<int32_t>& kept) const {
    const int32_t size = input_.num_experts / input_.num_groups;
    const auto value = [&](int32_t expert) {
      return std::binary_search(kept.begin(), kept.end(), expert / size)
                 ? selection(expert)
                 : -std::numeric_limits<double>::infinity();
    };
    // `later` must not stand before `sooner`.
    const auto is_passed_over = [&](int32_t later, int32_t sooner) {
      if (value(later) == value(sooner)) return later < sooner;
      return is_above(value(later), value(sooner), std::max(blur(later), blur(sooner)));
    };
    for (size_t k = 0; k < chosen.size(); ++k) {
      for (int32_t expert = 0; expert < input_.num_experts; ++expert) {
        const auto place = std::find(chosen.begin(), chosen.end(), expert) - chosen.begin();
        if (place > static_cast<ptrdiff_t>(k) && is_passed_over(expert, chosen[k])) return false;
      }
    }
    return true;
  }

  // Float32 cannot tell all sets of kept groups from the reference's. Of those that hold the groups of what
  // was chosen, one in which what was not chosen counts least: groups that are clearly above others that are
  // kept, then those whose best expert is the least.
  std::vector<int32_t> likely_kept_groups(const std::vector<int32_t>& chosen) const {
    const int32_t size = input_.num_experts / input_.num_groups;
    std::set<int32_t> kept;
    for (const int32_t expert : chosen) kept.insert(expert / size);
    std::vector<int32_t> others;
    for (int32_t group = 0; group < input_.num_groups; ++group) {
      if (kept.count(group) == 0) others.push_back(group);
    }
    std::set<int32_t> better;
    for (const int32_t group : others) {
      const auto than = [&](int32_t other) { return is_better(group, other); };
      if (std::any_of(kept.begin(), kept.end(), than)) better.insert(group);
    }
    std::sort(others.begin(), others.end(), [&](int32_t a, int32_t b) {
      if (better.count(a) != better.count(b)) return better.count(a) > better.count(b);
      return best_of(a) < best_of(b);
    });
    for (const int32_t group : others) {
      if (kept.size() < row_.kept_groups.size()) kept.insert(group);
    }
    return {kept.begin(), kept.end()};
  }

  // Whether as many groups are kept as there must be, and none that is left out is clearly better.
  bool are_the_best(const std::vector<int32_t>& kept) const {
    if (kept.size() != row_.kept_groups.size()) return false;
    for (int32_t group = 0; group < input_.num_groups; ++group) {
      if (std::binary_search(kept.begin(), kept.end(), group)) continue;
      for (const int32_t other : kept) {
        if (is_better(group, other)) return false;
      }
    }
    return true;
  }

  bool is_better(int32_t group, int32_t other) const {
    return is_above(row_.group_score[static_cast<size_t>(group)],
                    row_.group_score[static_cast<size_t>(other)], group_blur(group) + group_blur(other));
  }

  double best_of(int32_t group) const {
    const int32_t size = input_.num_experts / input_.num_groups;
    double best = -std::numeric_limits<double>::infinity();
    for (int32_t expert = group * size; expert < (group + 1) * size; ++expert) {
      best = std::max(best, selection(expert));
    }
    return best;
  }

  double group_blur(int32_t group) const {
    const int32_t size = input_.num_experts / input_.num_groups;
    double most = 0;
    for (int32_t expert = group * size; expert < (group + 1) * size; ++expert) {
      const double value = input_.bias.empty() ? 0 : std::fabs(selection(expert));
      if (!std::isinf(value)) {
        most = std::max({most, value, row_.score[static_cast<size_t>(expert)]});
      }
    }
    return 4 * ulp(2 * most);
  }

  // What a weight may lose because its score is below the normal float32 numbers.
  double lost_below_normal(const std::vector<int32_t>& chosen) const {
    double sum = 0;
    for (const int32_t expert : chosen) sum += row_.score[static_cast<size_t>(expert)];
    const double divisor =
        input_.weight_mode == TY_GATE_RENORMALIZED ? std::max(sum + input_.epsilon, 0x1p-149) : 1;
    const double most = std::fabs(input_.scale) * std::max(1.0, std::fabs(input_.shared_weight));
    return std::ldexp(most, -148) * (static_cast<double>(chosen.size()) / divisor + 1);
  }

  const gate::ReferenceInput& input_;
  const int64_t token_;
  const gate::ReferenceRow row_;
};

std::string first_difference(const char* name, const std::vector<int32_t>& got,
                             const std::vector<int32_t>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] != want[i]) return fmt::format("{}[{}] is {}, expected {}", name, i, got[i], want[i]);
  }
  return "";
}

}  // namespace

std::string difference(const GateOutputs& got, const GateOutputs& want) {
  if (got.ids.size() != want.ids.size() || got.weights.size() != want.weights.size() ||
      got.counts.size() != want.counts.size() || got.physical_counts.size() != want.physical_counts.size()) {
    return "the outputs are not of the same size";
  }
  for (size_t i = 0; i < want.ids.size(); ++i) {
    if (got.ids[i] != want.ids[i]) {
      return fmt::format("ids[{}] is {}, expected {}", i, got.ids[i], want.ids[i]);
    }
    if (std::bit_cast<uint32_t>(got.weights[i]) != std::bit_cast<uint32_t>(want.weights[i])) {
      return fmt::format("weights[{}] is {}, expected the bits of {}", i, got.weights[i], want.weights[i]);
    }
  }
  const std::string counts = first_difference("counts", got.counts, want.counts);
  return counts.empty() ? first_difference("physical_counts", got.physical_counts, want.physical_counts)
                        : counts;
}

namespace {

// To a tenth of what weights may be off.
bool is_same_token(const GateOutputs& a, const GateOutputs& b, size_t first, size_t columns) {
  for (size_t i = first; i < first + columns; ++i) {
    const double most = kRelative / 10 * std::fabs(double{b.weights[i]});
    if (a.ids[i] != b.ids[i] || !(std::fabs(double{a.weights[i]} - double{b.weights[i]}) <= most)) {
      return false;
    }
  }
  return true;
}

// Tokens that are as in `right`, if there is one, are right.
std::string first_broken(const GateProblem& problem, const GateOutputs& outputs, const GateOutputs* right) {
  const gate::ReferenceInput input = problem.reference_input();
  const auto columns = static_cast<size_t>(problem.columns());
  const auto top_k = static_cast<size_t>(problem.shape.top_k);
  if (outputs.ids.size() != static_cast<size_t>(problem.shape.tokens) * columns ||
      outputs.weights.size() != outputs.ids.size()) {
    return "ids and weights are [tokens, top_k + shared]: one of them is not";
  }
  std::vector<int32_t> counts(static_cast<size_t>(problem.shape.experts), 0);
  std::vector<int32_t> physical_counts(static_cast<size_t>(problem.num_physical_experts()), 0);
  for (int64_t token = 0; token < problem.shape.tokens; ++token) {
    const int64_t* ids = outputs.ids.data() + static_cast<size_t>(token) * columns;
    const float* weights = outputs.weights.data() + static_cast<size_t>(token) * columns;
    if (token >= problem.num_real_tokens()) {
      for (size_t column = 0; column < columns; ++column) {
        if (ids[column] != -1 || weights[column] != 0) {
          return fmt::format("token {} is padding: its ids are -1 and its weights 0, not {} and {}", token,
                             ids[column], weights[column]);
        }
      }
      continue;
    }
    if (right != nullptr && is_same_token(outputs, *right, static_cast<size_t>(token) * columns, columns)) {
      continue;
    }
    const RowCheck row(input, token);
    const std::vector<int32_t> chosen = row.experts(ids);
    if (chosen.empty() || !row.is_a_right_choice(chosen)) {
      return fmt::format("token {} has the ids {}, expected{}", token, fmt::join(ids, ids + top_k, " "),
                         row.expected_ids());
    }
    for (size_t column = top_k; column < columns; ++column) {
      const int64_t want = problem.num_physical_experts() + static_cast<int64_t>(column - top_k);
      if (ids[column] != want) {
        return fmt::format("token {} has shared expert {}, expected {}", token, ids[column], want);
      }
    }
    if (std::string wrong = row.wrong_weight(chosen, weights); !wrong.empty()) return wrong;
    for (size_t k = 0; k < top_k; ++k) {
      ++counts[static_cast<size_t>(chosen[k])];
      ++physical_counts[static_cast<size_t>(ids[k])];
    }
  }
  if (outputs.counts.empty() || right != nullptr) return "";
  std::string wrong = first_difference("counts", outputs.counts, counts);
  if (wrong.empty() && !outputs.physical_counts.empty()) {
    wrong = first_difference("physical_counts", outputs.physical_counts, physical_counts);
  }
  return wrong;
}

}  // namespace

std::string broken_promise(const GateProblem& problem, const GateOutputs& outputs) {
  return first_broken(problem, outputs, nullptr);
}

std::string mistake(const GateProblem& problem, const GateOutputs& got, const GateOutputs& right) {
  // Their counts must be those of their own ids: all of them are checked.
  return got.counts.empty() ? first_broken(problem, got, &right) : broken_promise(problem, got);
}

}  // namespace tokenyard::harness
