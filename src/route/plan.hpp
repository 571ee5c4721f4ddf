// Whether route takes one launch, from the lists of tuning/route.hpp, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "route/contract.hpp"
#include "runtime/runtime.hpp"
#include "tuning/route.hpp"

namespace tokenyard::route {

// What one launch is compiled for.
inline constexpr int32_t kLanes = 32, kItems = 8;  // of a token, and experts of each
inline constexpr int32_t kMostExperts = kLanes * kItems;
inline constexpr int32_t kMostChosen = 8;

struct Plan {
  int32_t launch = 0;  // which of the list, from 1; 0: gate, then align
  std::string why;
};

Plan plan(const DeviceProperties& device, std::span<const tuning::RouteLaunch> launches,
          const Problem& problem);

}  // namespace tokenyard::route
