#include <cstddef>
#include <cstdint>
#include <vector>

#include "port/cpu_threads.hpp"
#include "training/backward_rule.hpp"
#include "training/cpu.hpp"
#include "training/cpu_row.hpp"

namespace tokenyard::training {
namespace {

// One token after the other; holds what is used again from one to the next.
class Backward {
 public:
  explicit Backward(const GateBackwardProblem& problem)
      : problem_(problem),
        rule_(problem),
        top_k_(static_cast<size_t>(problem.forward.top_k)),
        logits_(problem.forward.logits, problem.forward.logits_dtype, problem.forward.row_stride,
                problem.forward.num_experts),
        logits_grad_(problem.logits_grad, problem.forward.logits_dtype, problem.forward.num_experts,
                     problem.forward.num_experts),
        row_(problem.forward.num_experts),
        chosen_(top_k_) {}

  void write(int64_t token) {
    const bool is_real = load_chosen(token);
    float common = 0;
    if (is_real) {
      if (rule_.reaches_all) {
        row_.load(logits_, token);
        row_.set_exponentials();
      }
      common = finish_chosen();
    }
    for (int32_t e = 0; e < problem_.forward.num_experts; ++e) {
      const float lost = common != 0 ? row_.exponentials[static_cast<size_t>(e)] * common : 0;
      logits_grad_.store_item(token, e, 0.0f - lost);
    }
    for (const Chosen& each : chosen_) {
      if (each.expert >= 0) logits_grad_.store_item(token, each.expert, each.grad);
    }
  }

 private:
  struct Chosen {
    int32_t expert;  // -1: none
    float logit, grad, numerator;
  };

  bool load_chosen(int64_t token) {
    bool any = false;
    for (size_t k = 0; k < top_k_; ++k) {
      const int64_t at = token * problem_.forward.columns() + static_cast<int64_t>(k);
      const int64_t id = problem_.forward.ids_are_int64
                             ? static_cast<const int64_t*>(problem_.forward.ids)[at]
                             : static_cast<const int32_t*>(problem_.forward.ids)[at];
      chosen_[k] = {-1, kNan, 0, 0};
      if (id < 0 || id >= problem_.forward.num_experts) continue;
      any = true;
      chosen_[k].expert = static_cast<int32_t>(id);
      chosen_[k].logit = logits_.item(token, chosen_[k].expert);
      chosen_[k].grad = rule_.weight_grad(chosen_[k].logit, problem_.weights_grad[at]);
    }
    return any;
  }

  // Returns what every expert loses.
  float finish_chosen() {
    float highest = row_.highest;
    if (rule_.forward.softmax_of_chosen()) {
      highest = -gate::kInfinity;
      for (const Chosen& each : chosen_) highest = each.logit > highest ? each.logit : highest;
    }
    for (Chosen& each : chosen_)
      each.numerator = rule_.forward.numerator(gate::ExactScores{}, each.logit, highest);
    const float sum = row_.sum(top_k_, [&](size_t k) { return chosen_[k].numerator; });
    const float divisor = rule_.forward.divisor(sum, row_.total);
    const float dot = rule_.shared_grad(row_.sum(top_k_, [&](size_t k) {
      return divisor > 0 ? chosen_[k].grad * (chosen_[k].numerator / divisor) : 0;
    }));
    const float common = rule_.common(dot, divisor);
    for (Chosen& each : chosen_) {
      each.grad = rule_.chosen(each.logit, each.numerator, divisor, each.grad, dot, common);
    }
    return common;
  }

  const GateBackwardProblem& problem_;
  const BackwardRule rule_;
  const size_t top_k_;
  const Rows logits_, logits_grad_;
  CpuRow row_;
  std::vector<Chosen> chosen_;
};

}  // namespace

void backward_on_cpu(const GateBackwardProblem& problem, int cores) {
  const int64_t tokens = problem.forward.num_tokens;
  const int threads = threads_for(tokens, problem.forward.num_experts, cores);
  run_on_threads(threads, [&](int rank) {
    Backward backward(problem);
    const int64_t end = tokens * (rank + 1) / threads;
    for (int64_t token = tokens * rank / threads; token < end; ++token) backward.write(token);
  });
}

}  // namespace tokenyard::training
