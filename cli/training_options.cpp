#include "training_options.hpp"

#include "gate_options.hpp"
#include "number.hpp"

namespace tokenyard::cli {

void add_training_options(CLI::App& command, harness::TrainingShape& shape) {
  add_gate_options(command, shape.gate);
  command.remove_option(command.get_option("--replicas"));  // a call that is trained has none
  const auto number = [&](const char* option, auto& target, const char* description,
                          Range<std::decay_t<decltype(target)>> range = {}) {
    return add_number(command, option, target, description, range)->group("Problem");
  };
  number("--sequences", shape.sequences,
         "sequences that the tokens fall into, at places that\nare drawn, 0: one of all tokens",
         {0, 1 << 16});
  command
      .add_flag("--given-counts", shape.counts_are_given,
                "give the losses the experts' counts, not the ids to\ncount")
      ->group("Problem");
  number("--balance-loss", shape.balance_coefficient, "coefficient of the balance loss; 0: none");
  number("--z-loss", shape.z_coefficient, "coefficient of the z-loss; 0: none");
}

void check_shape(const harness::TrainingShape& shape) { check_shape(shape.gate); }

}  // namespace tokenyard::cli
