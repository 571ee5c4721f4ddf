// Work that is shared out to threads of the host.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace tokenyard {

// Calls work(rank) once for each rank below `threads`. The caller does the work of rank 0, and of every
// thread that the system refuses to start.
template <class Work>
void run_on_threads(int threads, const Work& work) {
  int mine = threads;
  std::vector<std::jthread> helpers;
  helpers.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (; mine > 1; --mine) helpers.emplace_back(work, mine - 1);
  } catch (const std::exception&) {
  }
  for (int rank = 0; rank < mine; ++rank) work(rank);
}

}  // namespace tokenyard
