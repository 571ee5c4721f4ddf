// torch.ops.tokenyard.gate*, whose many options are listed once. The functions of python/tokenyard/ops.py
// document them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "arguments/gate.hpp"
#include "gate_call.hpp"

namespace tokenyard::torch_binding {

// `Option` are the types of the options in the schema.
template <class... Option>
struct GateOperators {
  static std::tuple<Tensor, Tensor> gate(const Tensor& logits, int64_t top_k, Option... options,
                                         std::optional<ScalarType> ids_dtype) {
    const Place place(logits);
    Gate call(place, logits, {top_k, as_argument(options)...});
    std::tuple chosen{call.ids(ids_dtype), call.weights()};
    const auto& [ids, weights] = chosen;
    call.write_to({.ids = view(ids), .weights = view(weights)});
    call.run();
    return chosen;
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor> gate_with_counts(const Tensor& logits, int64_t top_k,
                                                                     Option... options,
                                                                     std::optional<ScalarType> ids_dtype) {
    const Place place(logits);
    Gate call(place, logits, {top_k, as_argument(options)...});
    std::tuple chosen{call.ids(ids_dtype), call.weights(), call.counts(), call.physical_counts()};
    const auto& [ids, weights, counts, physical_counts] = chosen;
    call.write_to({.ids = view(ids),
                   .weights = view(weights),
                   .counts = view(counts),
                   .physical_counts = view(physical_counts)});
    call.run();
    return chosen;
  }

  static void gate_out(const Tensor& logits, int64_t top_k, Option... options, const Tensor& ids,
                       const Tensor& weights) {
    const Place place(logits);
    Gate call(place, logits, {top_k, as_argument(options)...});
    call.write_to({.ids = view(ids), .weights = view(weights)});
    call.run();
  }
};

using Gates = binding::WithGateOptions<GateOperators, std::optional<Tensor>, std::string>;

}  // namespace tokenyard::torch_binding
