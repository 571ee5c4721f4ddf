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

// Words of a row.
constexpr int32_t exchange_columns(int32_t experts) {
  return experts <= 256 ? 256 : experts <= 512 ? 512 : experts;
}

// kColumns is how many words a row has, or 0 if that is known at the launch only.
template <int kColumns = 0>
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

  TY_DEVICE int32_t columns() const { return kColumns != 0 ? kColumns : columns_; }

  // The epoch of the launch before, and the tag of this one: its epoch, shifted to its place in a word.
  template <class Thread>
  TY_DEVICE uint64_t epoch(Thread& gpu) const {
    return gpu.load(epoch_);
  }
  static TY_DEVICE uint64_t tag(uint64_t epoch) { return (epoch + 1) << kCountBits; }
  template <class Thread>
  TY_DEVICE void advance(Thread& gpu, uint64_t tag) const {
    gpu.store(epoch_, tag >> kCountBits);
  }

  template <class Thread>
  TY_DEVICE void publish(Thread& gpu, uint64_t tag, int32_t row, int32_t column, int32_t count) const {
    gpu.store(words_ + static_cast<int64_t>(row) * columns() + column, tag | static_cast<uint64_t>(count));
  }

  // Some words of a column, on their way. With kAll the table has exactly as many rows.
  template <int kInFlight>
  struct Words {
    static constexpr int kCount = kInFlight;
    uint64_t word[kInFlight];
  };
  template <bool kAll = false, class Thread, int kInFlight>
  TY_DEVICE void request(Thread& gpu, int32_t first_row, int32_t column, Words<kInFlight>& words) const {
    const uint64_t* const from = words_ + static_cast<int64_t>(first_row) * columns() + column;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (kAll || first_row + i < rows_) words.word[i] = gpu.load(from + static_cast<int64_t>(i) * columns());
    }
  }

  // Adds up some rows of a column: `before` over those above `row`, `total` over all. `words` holds what
  // request() brought. With kPoll it waits for words of this launch; without, a kernel boundary has ordered
  // them and the tag does not matter.
  template <bool kPoll, bool kAll = false, class Thread, int kInFlight>
  TY_DEVICE void gather(Thread& gpu, uint64_t tag, int32_t first_row, int32_t row, int32_t column,
                        Words<kInFlight>& words, int32_t& before, int32_t& total) const {
#pragma unroll 1
    while (kPoll && !fresh<kAll>(words, first_row, tag)) {
      gpu.pause();
      request<kAll>(gpu, first_row, column, words);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (!kAll && first_row + i >= rows_) break;
      const auto count = static_cast<int32_t>(words.word[i] & kMaxRowPairs);
      total += count;
      if (first_row + i < row) before += count;
    }
  }

  // The same over all of kRows rows, where nothing is on its way yet. Shorter code.
  template <int kRows, class Thread>
  TY_DEVICE void gather_all(Thread& gpu, uint64_t tag, int32_t row, int32_t column, int32_t& before,
                            int32_t& total) const {
    Words<kRows> words;
#pragma unroll 1
    for (;;) {
      request<true>(gpu, 0, column, words);
      if (fresh<true>(words, 0, tag)) break;
      gpu.pause();
    }
    gather<false, true>(gpu, tag, 0, row, column, words, before, total);
  }

  TY_DEVICE int32_t rows() const { return rows_; }

 private:
  template <bool kAll, int kInFlight>
  TY_DEVICE bool fresh(const Words<kInFlight>& words, int32_t first_row, uint64_t tag) const {
    uint64_t differ = 0;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (kAll || first_row + i < rows_) differ |= words.word[i] ^ tag;
    }
    return differ >> kCountBits == 0;
  }

  uint64_t* epoch_;
  uint64_t* words_;
  int32_t rows_;
  int32_t columns_;
};

}  // namespace tokenyard::align
