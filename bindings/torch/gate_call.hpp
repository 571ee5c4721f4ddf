// A call of gate, whose operators differ in their outputs alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

class Gate {
 public:
  Gate(const Place& place, const Tensor& logits, const binding::GateOptions& options)
      : place_(place), args_(binding::arguments(view(logits), options)) {}

  const ty_gate_args& args() const { return args_; }

  // New tensors for the outputs, ids first. With arguments that allow no size nothing is allocated: the
  // library says what is wrong with them.
  Tensor ids(std::optional<ScalarType> dtype) const { return chosen(dtype.value_or(ScalarType::Int)); }
  Tensor weights() const { return chosen(ScalarType::Float); }
  Tensor counts() const { return place_.empty({args_.num_experts}, ScalarType::Int); }
  Tensor physical_counts() const { return place_.empty({binding::physical_experts(args_)}, ScalarType::Int); }

  void write_to(const binding::GateOutputs& outputs) { binding::write_to(args_, outputs, place_.device()); }

  void run() const { check(ty_gate(place_.device(), &args_, place_.stream())); }

 private:
  Tensor chosen(ScalarType dtype) const {
    if (!binding::has_sizes(args_)) run();
    return place_.empty({args_.num_tokens, binding::columns(args_)}, dtype);
  }

  const Place& place_;
  ty_gate_args args_;
};

}  // namespace tokenyard::torch_binding
