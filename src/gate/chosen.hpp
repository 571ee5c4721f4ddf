// What a lane has of its token's result.
#pragma once

#include <cstdint>

namespace tokenyard::gate {

// Nothing where the rank is K or beyond.
struct Chosen {
  int32_t rank;
  int32_t expert;
  float weight;
};

}  // namespace tokenyard::gate
