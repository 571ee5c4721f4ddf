// Calls in memory of their own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tokenyard/tokenyard.hpp"

namespace tokenyard::binding {

// `size_of` and `run_in` are ty_align_once_size() and ty_align_once(), or those of route. allocate(bytes)
// returns an object that holds memory, whose release follows the order of `stream`. So streams and graphs
// share no state, whoever runs beside whom.
template <class Args, class Allocate>
void run_once(ty_status (*size_of)(ty_device, const Args*, size_t*),
              ty_status (*run_in)(ty_device, const Args*, void*, size_t, void*), ty_device device,
              const Args& args, void* stream, Allocate&& allocate) {
  size_t bytes = 0;
  check(size_of(device, &args, &bytes));
  if (bytes == 0) return check(run_in(device, &args, nullptr, 0, stream));
  const auto memory = allocate(static_cast<int64_t>(bytes));
  check(run_in(device, &args, memory.data_ptr(), bytes, stream));
}

}  // namespace tokenyard::binding
