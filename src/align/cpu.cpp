#include "align/cpu.hpp"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace tokenyard::align {
namespace {

constexpr int64_t kPairsPerThread = 48 * 1024;  // measured: some 60 µs, what the start of a thread costs
constexpr int64_t kCellsPerLine = 16;           // int32 cells in a cache line

struct Range {
  int64_t begin, end;
};

// The part of [0, size) that falls to `rank` of `ranks`.
Range share(int64_t size, int rank, int ranks) { return {size * rank / ranks, size * (rank + 1) / ranks}; }

class CountingSort {
 public:
  CountingSort(const Problem& problem, int threads)
      : problem_(problem),
        threads_(threads),
        dropped_(problem.num_local_experts),
        row_((dropped_ / kCellsPerLine + 2) * kCellsPerLine),  // no line belongs to two threads
        cells_(static_cast<size_t>(row_ * threads)),
        counts_(static_cast<size_t>(problem.num_local_experts)),
        offsets_(static_cast<size_t>(problem.num_local_experts) + 1) {}

  void count(int rank) {
    int32_t* counts = cells(rank);
    for_each_pair(rank, [=](int64_t, int32_t expert) { ++counts[expert]; });
  }

  // Turns the count in each cell into the slot where its pairs begin.
  void prefix() {
    int32_t next = 0;
    for (int32_t expert = 0; expert < problem_.num_local_experts; ++expert) {
      const int32_t first = next;
      for (int rank = 0; rank < threads_; ++rank) next += std::exchange(cells(rank)[expert], next);
      counts_[expert] = next - first;
      next = first + round_up(next - first);
      offsets_[expert + 1] = next;
    }
    *problem_.num_padded = next;
    if (problem_.counts != nullptr) std::copy(counts_.begin(), counts_.end(), problem_.counts);
    if (problem_.offsets != nullptr) std::copy(offsets_.begin(), offsets_.end(), problem_.offsets);
    if (problem_.num_dropped != nullptr) {
      *problem_.num_dropped = 0;
      for (int rank = 0; rank < threads_; ++rank) *problem_.num_dropped += cells(rank)[dropped_];
    }
  }

  void place(int rank) {
    int32_t* next = cells(rank);
    int32_t* sorted = problem_.sorted_pair_ids;
    int32_t* inverse = problem_.inverse;
    for_each_pair(rank, [=, dropped = dropped_](int64_t pair, int32_t expert) {
      int32_t slot = -1;
      if (expert != dropped) {
        slot = next[expert]++;
        sorted[slot] = static_cast<int32_t>(pair);
      }
      if (inverse != nullptr) inverse[pair] = slot;
    });
  }

  // Writes all that is no pair: the blocks' experts and rows, and the padding.
  void describe_blocks(int rank) {
    const int64_t block = problem_.block_size;
    const int64_t used = offsets_.back() / block;
    auto [begin, end] = share(problem_.num_blocks(), rank, threads_);
    while (begin < std::min(end, used)) {
      const auto above = std::upper_bound(offsets_.begin(), offsets_.end(), begin * block);
      const auto expert = static_cast<int32_t>(above - offsets_.begin() - 1);
      const int64_t last = *above / block - 1;
      const int32_t id = problem_.first_id + expert;
      set_blocks(begin, std::min(last + 1, end), id, problem_.block_size);
      if (last < end) {
        const int64_t unpadded = offsets_[expert] + counts_[expert];
        set_blocks(last, last + 1, id, static_cast<int32_t>(unpadded - last * block));
        pad(unpadded, *above);
      }
      begin = last + 1;
    }
    if (begin < end) {
      set_blocks(begin, end, -1, 0);
      pad(begin * block, std::min(end * block, problem_.capacity));
    }
  }

 private:
  int32_t* cells(int rank) { return cells_.data() + row_ * rank; }

  int32_t round_up(int32_t rows) const {
    const int64_t block = problem_.block_size;
    return static_cast<int32_t>((rows + block - 1) / block * block);
  }

  void set_blocks(int64_t begin, int64_t end, int32_t id, int32_t rows) {
    std::fill(problem_.block_expert + begin, problem_.block_expert + end, id);
    if (problem_.block_rows != nullptr)
      std::fill(problem_.block_rows + begin, problem_.block_rows + end, rows);
  }

  void pad(int64_t begin, int64_t end) {
    std::fill(problem_.sorted_pair_ids + begin, problem_.sorted_pair_ids + end,
              static_cast<int32_t>(problem_.num_pairs()));
  }

  // Calls visit(pair, local expert or dropped_) for the slice of `rank`, in ascending order.
  template <class Visit>
  void for_each_pair(int rank, Visit visit) const {
    if (problem_.ids_are_int64) {
      for_each_id(static_cast<const int64_t*>(problem_.topk_ids), rank, visit);
    } else {
      for_each_id(static_cast<const int32_t*>(problem_.topk_ids), rank, visit);
    }
  }

  template <class Id, class Visit>
  void for_each_id(const Id* ids, int rank, Visit visit) const {
    const auto experts = static_cast<uint32_t>(problem_.num_experts);
    const auto local_experts = static_cast<uint32_t>(problem_.num_local_experts);
    const int32_t* map = problem_.expert_map;
    const int32_t dropped = dropped_;
    if (map == nullptr) {
      const auto first_id = static_cast<uint64_t>(int64_t{problem_.first_id});
      walk(ids, rank, [=](int64_t pair, uint64_t id) {
        visit(pair, id - first_id < experts ? static_cast<int32_t>(id - first_id) : dropped);
      });
    } else {
      walk(ids, rank, [=](int64_t pair, uint64_t id) {
        const auto local = id < experts ? static_cast<uint32_t>(map[id]) : local_experts;
        visit(pair, local < local_experts ? static_cast<int32_t>(local) : dropped);
      });
    }
  }

  // Rows without gaps are walked as a single row. A negative id becomes a large one.
  template <class Id, class Visit>
  void walk(const Id* ids, int rank, Visit visit) const {
    const int64_t columns =
        problem_.row_stride == problem_.top_k ? problem_.num_pairs() : int64_t{problem_.top_k};
    auto [pair, end] = share(problem_.num_pairs(), rank, threads_);
    while (pair < end) {
      const int64_t row = pair / columns;
      const int64_t row_end = std::min((row + 1) * columns, end);
      const Id* from = ids + row * (problem_.row_stride - columns);
      for (; pair < row_end; ++pair) visit(pair, static_cast<uint64_t>(int64_t{from[pair]}));
    }
  }

  const Problem& problem_;
  const int threads_;
  const int32_t dropped_;  // the cell behind the experts' counts pairs that are not valid
  const int64_t row_;
  std::vector<int32_t> cells_;  // [threads][row_]
  std::vector<int32_t> counts_;
  std::vector<int32_t> offsets_;
};

}  // namespace

int cpu_threads(const Problem& problem, int cores) {
  return static_cast<int>(std::clamp<int64_t>(problem.num_pairs() / kPairsPerThread, 1, std::max(cores, 1)));
}

void sort_on_cpu(const Problem& problem, int threads) {
  CountingSort sort(problem, threads);
  std::barrier counted(threads, [&sort]() noexcept { sort.prefix(); });
  const auto finish = [&sort](int rank) {
    sort.place(rank);
    sort.describe_blocks(rank);
  };

  // The caller does the work of rank 0, and of every thread that the system refuses to start.
  int mine = threads;
  std::vector<std::jthread> helpers;
  helpers.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (; mine > 1; --mine) {
      helpers.emplace_back([&, rank = mine - 1] {
        sort.count(rank);
        counted.arrive_and_wait();
        finish(rank);
      });
    }
  } catch (const std::exception&) {
  }
  for (int rank = 0; rank < mine; ++rank) sort.count(rank);
  if (mine > 1) static_cast<void>(counted.arrive(mine - 1));
  counted.arrive_and_wait();
  for (int rank = 0; rank < mine; ++rank) finish(rank);
}

}  // namespace tokenyard::align
