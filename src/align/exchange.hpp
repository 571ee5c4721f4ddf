// How blocks learn each other's counts: a table of words in the workspace, one per (row, expert), a row
// being a block or a cluster of blocks.
//
// A word holds a count and the epoch of the launch that wrote it. Whoever needs a count polls the word
// itself: no barrier, no flag beside the data, nothing to clear between launches, and no ordering of one
// word against another to get wrong. The epoch lives in the workspace's head; every block reads it before
// it publishes, and it is advanced after every block has published (block 0 has then seen a word of each).
//
// 24 bits of count: a row never covers more pairs (kMaxRowPairs; the launcher sees to it). 40 bits of
// epoch: at a launch every two microseconds they repeat after 25 days, and a word would have to lie
// untouched for exactly that many launches to be taken for a fresh one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::align {

inline constexpr int kCountBits = 24;
inline constexpr int32_t kMaxRowPairs = (1 << kCountBits) - 1;

class Exchange {
 public:
  static constexpr size_t kHeadBytes = 256;
  static constexpr size_t bytes(int64_t rows, int64_t columns) {
    return kHeadBytes + static_cast<size_t>(rows * columns) * sizeof(uint64_t);
  }

  // `memory` is a prepared workspace, all zero before its first launch.
  Exchange(void* memory, int32_t rows, int32_t columns)
      : epoch_(static_cast<uint64_t*>(memory)),
        words_(reinterpret_cast<uint64_t*>(static_cast<char*>(memory) + kHeadBytes)),
        rows_(rows),
        columns_(columns) {}

  TY_DEVICE int32_t columns() const { return columns_; }

  // This launch's tag, shifted to its place in a word.
  template <class Thread>
  TY_DEVICE uint64_t tag(Thread& gpu) const {
    return (gpu.load(epoch_) + 1) << kCountBits;
  }
  template <class Thread>
  TY_DEVICE void advance(Thread& gpu, uint64_t tag) const {
    gpu.store(epoch_, tag >> kCountBits);
  }

  template <class Thread>
  TY_DEVICE void publish(Thread& gpu, uint64_t tag, int32_t row, int32_t column, int32_t count) const {
    gpu.store(words_ + static_cast<int64_t>(row) * columns_ + column, tag | static_cast<uint64_t>(count));
  }

  // Some words of a column, on their way. Fewer where waves are wide: AMD's compiler keeps the addresses,
  // too.
  template <class Thread>
  static constexpr int kInFlight = Thread::warp_size == 32 ? 8 : 2;
  template <class Thread>
  struct Words {
    uint64_t word[kInFlight<Thread>];
  };
  template <class Thread>
  TY_DEVICE void request(Thread& gpu, int32_t first_row, int32_t column, Words<Thread>& words) const {
    if (column >= columns_) return;
#pragma unroll
    for (int i = 0; i < kInFlight<Thread>; ++i) {  // beyond the last row, the last row again
      const int32_t row = port::min_of(first_row + i, rows_ - 1);
      words.word[i] = gpu.load(words_ + static_cast<int64_t>(row) * columns_ + column);
    }
  }

  // Adds up a column: `before` over the rows above `row`, `total` over all. `words` holds what request()
  // brought of the first rows. With kPoll it waits for words of this launch; without, a kernel boundary has
  // ordered them and the tag does not matter.
  template <bool kPoll, class Thread>
  TY_DEVICE void gather(Thread& gpu, uint64_t tag, int32_t row, int32_t column, Words<Thread>& words,
                        int32_t& before, int32_t& total) const {
    for (int32_t first = 0; first < rows_; first += kInFlight<Thread>) {
      if (first > 0) request(gpu, first, column, words);
      while (kPoll && !fresh<Thread>(words, tag)) {
        gpu.pause();
        request(gpu, first, column, words);
      }
#pragma unroll
      for (int i = 0; i < kInFlight<Thread>; ++i) {
        if (first + i >= rows_) break;
        const auto count = static_cast<int32_t>(words.word[i] & kMaxRowPairs);
        total += count;
        if (first + i < row) before += count;
      }
    }
  }

 private:
  template <class Thread>
  static TY_DEVICE bool fresh(const Words<Thread>& words, uint64_t tag) {
    uint64_t differ = 0;
#pragma unroll
    for (int i = 0; i < kInFlight<Thread>; ++i) differ |= words.word[i] ^ tag;
    return differ >> kCountBits == 0;
  }

  uint64_t* epoch_;
  uint64_t* words_;
  int32_t rows_;
  int32_t columns_;
};

}  // namespace tokenyard::align
