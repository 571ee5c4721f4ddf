// From a plan to route's one launch, for any port. The backends (backend_*.{cu,cpp}) instantiate it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "gate/row_shape.hpp"
#include "gate/selection.hpp"
#include "gate/weights.hpp"
#include "port/floats.hpp"
#include "route/contract.hpp"
#include "route/kernel_cluster.hpp"
#include "route/kernel_token.hpp"
#include "route/plan.hpp"
#include "runtime/backend.hpp"
#include "tuning/route.hpp"

namespace tokenyard::route {

// kLaunches: the launches to compile, as plan() will choose among them: of tuning/route.hpp.
template <class Port, const auto& kLaunches>
class Launcher {
 public:
  static RouteOperation operation() { return {kLaunches, run}; }

 private:
  static Status run(int32_t launch, const Problem& problem, Stream stream) {
    return problem.gate.logits_dtype == TY_BFLOAT16 ? run_as<port::bfloat16>(launch, problem, stream)
                                                    : run_as<float>(launch, problem, stream);
  }

  template <class Logit>
  static Status run_as(int32_t launch, const Problem& problem, Stream stream) {
    using enum gate::Grouping;
    using enum gate::Selection;
    using gate::Weighting;
    if (problem.gate.bias == nullptr) {
      return run_shape<Logit, kLogit, kNone, Weighting::kSoftmaxOfChosen>(launch, problem, stream);
    }
    return problem.gate.num_groups == 1
               ? run_shape<Logit, kSigmoid, kNone, Weighting::kSigmoid>(launch, problem, stream)
               : run_shape<Logit, kSigmoid, kEight, Weighting::kSigmoid>(launch, problem, stream);
  }

  // With the launch of this number, or one behind it.
  template <class Logit, gate::Selection kSelection, gate::Grouping kGrouping, gate::Weighting kWeighting,
            size_t kIndex = 0>
  static Status run_shape(int32_t launch, const Problem& problem, Stream stream) {
    if constexpr (kIndex + 1 < std::size(kLaunches)) {
      if (launch != static_cast<int32_t>(kIndex + 1)) {
        return run_shape<Logit, kSelection, kGrouping, kWeighting, kIndex + 1>(launch, problem, stream);
      }
    }
    constexpr tuning::RouteLaunch size = kLaunches[kIndex];
    using Shape = gate::RowShape<Logit, kLanes, kItems, kSelection, kGrouping, kWeighting>;
    using Kernel = std::conditional_t<size.all_tokens() == 1, TokenRoute<Shape, size.threads>,
                                      ClusterRoute<Shape, size.threads, size.cluster, size.tokens>>;
    static_assert(Kernel::kMaxK == kMostChosen);
    return Port::launch(Kernel(problem), size.cluster, stream);
  }
};

}  // namespace tokenyard::route
