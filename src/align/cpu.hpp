// align on the host's cores: a parallel stable counting sort.
//
//   slices of pairs, one a thread       ids ──count──▶ counts of [thread][expert]
//   one thread, while the others wait   prefix over (expert, thread) ──▶ first slot of each of these cells
//   slices again                        ids ──place──▶ sorted_pair_ids, inverse
//   shares of blocks, one a thread      ──▶ block_expert, block_rows, padding up to the end of capacity
//
// A thread owns what it writes: no loop over pairs holds an atomic, and the order is that of the pairs
// whatever the number of threads.
#pragma once

#include "align/contract.hpp"

namespace tokenyard::align {

// How many threads are worth their start: few pairs are sorted by the caller alone.
int cpu_threads(const Problem& problem, int cores);

void sort_on_cpu(const Problem& problem, int threads);

}  // namespace tokenyard::align
