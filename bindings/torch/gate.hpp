// torch.ops.tokenyard.gate*, whose many options are listed once. The functions of python/tokenyard/ops.py
// document them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "arguments/gate.hpp"
#include "tensors.hpp"
#include "tokenyard/tokenyard.hpp"

namespace tokenyard::torch_binding {

// An option as binding::GateOptions has it.
template <class Option>
const Option& as_argument(const Option& option) {
  return option;
}
inline std::optional<binding::View> as_argument(const std::optional<Tensor>& option) { return view(option); }

// A call; the operators differ in their outputs alone.
class Gate {
 public:
  Gate(const Tensor& logits, const binding::GateOptions& options)
      : place_(logits), args_(binding::arguments(view(logits), options)) {}

  // New tensors for the outputs. With arguments that allow no size nothing is allocated: the library says
  // what is wrong with them.
  Tensor ids(std::optional<ScalarType> dtype) const { return chosen(dtype.value_or(ScalarType::Int)); }
  Tensor weights() const { return chosen(ScalarType::Float); }
  Tensor counts() const { return place_.empty({args_.num_experts}, ScalarType::Int); }
  Tensor physical_counts() const {
    if (binding::physical_experts(args_) < 0) run();
    return place_.empty({binding::physical_experts(args_)}, ScalarType::Int);
  }

  void run_into(const binding::GateOutputs& outputs) {
    binding::write_to(args_, outputs, place_.device());
    run();
  }

 private:
  Tensor chosen(ScalarType dtype) const {
    if (args_.top_k < 1 || args_.num_shared_experts < 0) run();
    return place_.empty({args_.num_tokens, binding::columns(args_)}, dtype);
  }
  void run() const { check(ty_gate(place_.device(), &args_, place_.stream())); }

  Place place_;
  ty_gate_args args_;
};

// `Option` are the types of the options in the schema.
template <class... Option>
struct GateOperators {
  static std::tuple<Tensor, Tensor> gate(const Tensor& logits, Option... options,
                                         std::optional<ScalarType> ids_dtype) {
    Gate call(logits, {as_argument(options)...});
    std::tuple chosen{call.ids(ids_dtype), call.weights()};
    const auto& [ids, weights] = chosen;
    call.run_into({.ids = view(ids), .weights = view(weights)});
    return chosen;
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor> gate_with_counts(const Tensor& logits, Option... options,
                                                                     std::optional<ScalarType> ids_dtype) {
    Gate call(logits, {as_argument(options)...});
    std::tuple chosen{call.ids(ids_dtype), call.weights(), call.counts(), call.physical_counts()};
    const auto& [ids, weights, counts, physical_counts] = chosen;
    call.run_into({.ids = view(ids),
                   .weights = view(weights),
                   .counts = view(counts),
                   .physical_counts = view(physical_counts)});
    return chosen;
  }

  static void gate_out(const Tensor& logits, Option... options, const Tensor& ids, const Tensor& weights) {
    Gate call(logits, {as_argument(options)...});
    call.run_into({.ids = view(ids), .weights = view(weights)});
  }
};

using OptionalTensor = std::optional<Tensor>;
using Gates = GateOperators<int64_t, OptionalTensor, std::string, std::string, int64_t, int64_t, std::string,
                            double, double, int64_t, std::string, double, OptionalTensor, OptionalTensor,
                            int64_t, OptionalTensor>;

}  // namespace tokenyard::torch_binding
