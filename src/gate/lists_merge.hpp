// The eight highest of eight sorted lists.
#pragma once

#include <cstdint>

#include "gate/sort.hpp"
#include "port/port.hpp"

namespace tokenyard::gate {

// Eight lanes with eight numbers each, the highest first; a lane is left with the number of the rank that
// rank_of_merged() says.
//
// Of two sorted lists of eight, the higher of i-th and (7 - i)-th are the eight best: numbers that rise and
// fall, which exchanges over distances of 4, 2 and 1 sort. Here one list is on as many lanes as merged it, so
// each merge leaves half as many to a lane, and which lane has a number's partner changes: that across the
// middle of four ranks or two.
template <class Thread>
TY_DEVICE int32_t merge_eight_lists(Thread& gpu, const int32_t (&list)[8]) {
  const unsigned lane = static_cast<unsigned>(gpu.lane()) % 8;
  const auto is_one_of = [&](uint32_t lanes) { return (lanes >> lane & 1) != 0; };
  const auto pick = [](bool higher, int32_t a, int32_t b) {
    return higher ? port::max_of(a, b) : port::min_of(a, b);
  };

  // Ranks 0 to 3 to the even lane, 4 to 7 to the odd one.
  int32_t four[4], other[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) four[i] = port::max_of(list[i], gpu.shfl_xor(list[7 - i], 1));
#pragma unroll
  for (int i = 0; i < 4; ++i) other[i] = gpu.shfl_xor(four[3 - i], 1);
#pragma unroll
  for (int i = 0; i < 4; ++i) four[i] = pick(lane % 2 == 0, four[i], other[i]);
  sort_bitonic<4>(four);

  // Two ranks a lane: from 0 on to lane 0, from 2 on to lane 3, from 4 on to lane 1, from 6 on to lane 2; of
  // the other four lanes likewise.
  int32_t two[2], across[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) two[i] = port::max_of(four[i], gpu.shfl_xor(four[3 - i], 3));
#pragma unroll
  for (int i = 0; i < 2; ++i) two[i] = pick(is_one_of(0x99), two[i], gpu.shfl_xor(two[i], 1));
#pragma unroll
  for (int i = 0; i < 2; ++i) across[i] = gpu.shfl_xor(two[1 - i], 3);
#pragma unroll
  for (int i = 0; i < 2; ++i) two[i] = pick(is_one_of(0x33), two[i], across[i]);
  put_higher_first(two[0], two[1]);

  int32_t one = port::max_of(two[0], gpu.shfl_xor(two[1], 6));
  one = pick(is_one_of(0x69), one, gpu.shfl_xor(one, 1));
  one = pick(is_one_of(0xc3), one, gpu.shfl_xor(one, 3));
  return pick(is_one_of(0x0f), one, gpu.shfl_xor(one, 6));
}

TY_DEVICE int32_t rank_of_merged(int lane) {
  constexpr uint32_t kRanks = 0x51372640u;  // a digit a lane
  return static_cast<int32_t>(kRanks >> 4 * (lane % 8) & 15);
}

// The sum of values that lanes hold by those ranks, neighbours first.
template <class Thread>
TY_DEVICE float sum_of_merged(Thread& gpu, float value) {
  value += gpu.shfl_xor(value, 6);
  value += gpu.shfl_xor(value, 3);
  return value + gpu.shfl_xor(value, 1);
}

}  // namespace tokenyard::gate
