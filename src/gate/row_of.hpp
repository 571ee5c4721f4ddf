// The way from a row of logits to its chosen experts that takes the least time for a shape of wide lanes.
#pragma once

#include <type_traits>

#include "gate/lanes_row.hpp"
#include "gate/packed_row.hpp"

namespace tokenyard::gate {

template <class Thread, class Shape, int kTokens>
using RowOf = std::conditional_t<sizeof(typename Shape::Logit) == 2 && !Shape::kBiased &&
                                     Shape::kGrouping == Grouping::kNone,
                                 PackedRow<Thread, Shape, kTokens>, LanesRow<Thread, Shape, kTokens>>;

}  // namespace tokenyard::gate
