// How blocks learn each other's counts: a table of words in the workspace, one per (row, expert), a row
// being a block or a cluster of blocks.
//
// A word holds the epoch of the launch that wrote it and a count, or two. Whoever needs a count polls the
// word itself: no barrier, no flag beside the data, nothing to clear between launches, and no ordering of one
// word against another to get wrong. The epoch lives in the workspace's head. One thread of a block reads it,
// before the block sends or publishes anything; block 0 advances it when it has seen a word of every row,
// which all blocks of the row have contributed to. So no block can read it too late.
//
// The epoch of a word has 32 bits. Every word is written anew at least once in 2^31 launches (advance() sees
// to those that no launch used), so none is ever old enough to be taken for a fresh one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "port/port.hpp"
#include "runtime/backend.hpp"

namespace tokenyard::align {

inline constexpr int kEpochBit = 32;  // of a word; the counts stand below

// Words of a row.
constexpr int32_t exchange_columns(int32_t experts) {
  return experts <= 256 ? 256 : experts <= 512 ? 512 : experts;
}

// kColumns is how many counts a row has, or 0 if that is known at the launch only. kCounts is how many stand
// in a word: two halve what all blocks read, which is what limits many of them, but then none may pass 65535.
template <int kColumns = 0, int kCounts = 1>
class Exchange {
 public:
  static constexpr size_t kHeadBytes = 256;
  static constexpr size_t bytes(int64_t rows, int64_t columns) {
    return kHeadBytes + static_cast<size_t>(rows * columns) * sizeof(uint64_t);
  }

  // `workspace` is prepared: all zero before its first launch.
  Exchange(Workspace workspace, int32_t rows, int32_t columns)
      : epoch_(static_cast<uint64_t*>(workspace.memory)),
        words_(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace.memory) + kHeadBytes)),
        num_words_(static_cast<int64_t>((workspace.bytes - kHeadBytes) / sizeof(uint64_t))),
        rows_(rows),
        columns_(columns) {}

  TY_DEVICE int32_t columns() const { return kColumns != 0 ? kColumns : columns_; }

  // The epoch of the launch before, and the tag of this one: its epoch, shifted to its place in a word.
  template <class Thread>
  TY_DEVICE uint64_t epoch(Thread& gpu) const {
    return gpu.load(epoch_);
  }
  static TY_DEVICE uint64_t tag(uint64_t epoch) { return (epoch + 1) << kEpochBit; }
  // By one thread of the grid, when its block has seen a word of every row.
  template <class Thread>
  TY_DEVICE void advance(Thread& gpu, uint64_t epoch) const {
    gpu.store(epoch_, epoch + 1);
    if ((epoch + 1) % kRenewal != 0) return;
#pragma unroll 1
    for (int64_t i = index(rows_, 0); i < num_words_; ++i) gpu.store(words_ + i, tag(epoch));
  }

  // By whole warps, a column a lane; writes those of the lanes that are `mine`, two neighbours alike.
  template <class Thread>
  TY_DEVICE void publish(Thread& gpu, uint64_t tag, int32_t row, int32_t column, int32_t count,
                         bool mine) const {
    auto counts = static_cast<uint32_t>(count);
    if constexpr (kCounts == 2) {
      counts |= static_cast<uint32_t>(gpu.shfl_xor(count, 1)) << 16;
      mine = mine && column % 2 == 0;
    }
    if (mine) gpu.store(words_ + index(row, column), tag | counts);
  }

  // Some words of a column, on their way. With kAll the table has exactly as many rows.
  template <int kInFlight>
  struct Words {
    static constexpr int kCount = kInFlight;
    uint64_t word[kInFlight];
  };
  template <bool kAll = false, class Thread, int kInFlight>
  TY_DEVICE void request(Thread& gpu, int32_t first_row, int32_t column, Words<kInFlight>& words) const {
    const uint64_t* const from = words_ + index(first_row, column);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (kAll || first_row + i < rows_) words.word[i] = gpu.load(from + index(i, 0));
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
      auto count = static_cast<int32_t>(words.word[i]);
      if constexpr (kCounts == 2) count = count >> (column % 2 * 16) & 0xffff;
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
  static constexpr uint64_t kRenewal = uint64_t{1} << 31;  // launches

  TY_DEVICE int64_t index(int32_t row, int32_t column) const {
    return (static_cast<int64_t>(row) * columns() + column) / kCounts;
  }

  template <bool kAll, int kInFlight>
  TY_DEVICE bool fresh(const Words<kInFlight>& words, int32_t first_row, uint64_t tag) const {
    uint64_t differ = 0;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      if (kAll || first_row + i < rows_) differ |= words.word[i] ^ tag;
    }
    return differ >> kEpochBit == 0;
  }

  uint64_t* epoch_;
  uint64_t* words_;
  int64_t num_words_;
  int32_t rows_;
  int32_t columns_;
};

}  // namespace tokenyard::align
