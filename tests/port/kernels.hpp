// One kernel per operation of the port: what each thread gets goes to out[], to be checked on the host.
#pragma once

#include <cstdint>

#include "port/port.hpp"

namespace tokenyard::tests::kernels {

inline constexpr int kThreads = 128;
inline constexpr int kBlocks = 8;

// What the kernels have in common, and the shared memory of those that use none.
template <int kCluster = 1, bool kCooperative = false>
struct TestKernel {
  static constexpr int threads = kThreads;
  static constexpr int cluster = kCluster;
  static constexpr bool cooperative = kCooperative;

  template <class Thread>
  struct Shared {};

 protected:
  template <class Thread>
  static TY_DEVICE int self(Thread& gpu) {
    return gpu.block() * gpu.threads() + gpu.thread();
  }
};

// ---- launches ----

// Lets the next launch begin, and only then, in its own time, doubles.
struct SlowDouble : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  SlowDouble(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.let_next_begin();
    for (int i = 0; i < 100; ++i) gpu.delay();
    out[self(gpu)] = 2 * in[self(gpu)];
  }
};

struct AwaitAndCopy : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  AwaitAndCopy(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.await_previous();
    out[self(gpu)] = in[kBlocks * kThreads - 1 - self(gpu)];
  }
};

// ---- where am I ----

struct Position {
  int32_t thread, thread_at_hand, threads, block, blocks, lane, warp, warps;
};

struct WhereAmI : TestKernel<> {
  Position* out;
  explicit WhereAmI(Position* out) : out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = {gpu.thread(), gpu.thread_at_hand(), gpu.threads(), gpu.block(),
                      gpu.blocks(), gpu.lane(),           gpu.warp(),    gpu.warps()};
  }
};

// Bits are written as uint64_t whatever the warp's width.
struct LanesBelow : TestKernel<> {
  uint64_t* out;
  explicit LanesBelow(uint64_t* out) : out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.lanes_below();
  }
};

// ---- bits ----

struct Bits {
  int32_t popcount, lowest;
};

struct CountBits : TestKernel<> {
  const uint64_t* in;  // not 0 in the warp's width
  Bits* out;
  CountBits(const uint64_t* in, Bits* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const auto mask = static_cast<typename Thread::lane_mask>(in[self(gpu)]);
    out[self(gpu)] = {gpu.popcount(mask), gpu.lowest(mask)};
  }
};

// ---- warp ----

template <class T>
struct Shuffle : TestKernel<> {
  const T* in;
  const int32_t* from;
  T* out;
  Shuffle(const T* in, const int32_t* from, T* out) : in(in), from(from), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.shfl(in[self(gpu)], from[self(gpu)]);
  }
};

template <class T>
struct ShuffleUp : TestKernel<> {
  const T* in;
  int32_t delta;
  T* out;
  ShuffleUp(const T* in, int32_t delta, T* out) : in(in), delta(delta), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.shfl_up(in[self(gpu)], delta);
  }
};

template <class T>
struct ShuffleXor : TestKernel<> {
  const T* in;
  int32_t mask;
  T* out;
  ShuffleXor(const T* in, int32_t mask, T* out) : in(in), mask(mask), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.shfl_xor(in[self(gpu)], mask);
  }
};

struct Vote {
  uint64_t ballot;
  int32_t any;
};

struct Votes : TestKernel<> {
  const int32_t* in;
  Vote* out;
  Votes(const int32_t* in, Vote* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const bool vote = in[self(gpu)] != 0;
    out[self(gpu)].ballot = gpu.ballot(vote);
    out[self(gpu)].any = gpu.any(vote);
  }
};

struct Match : TestKernel<> {
  const int32_t* in;
  uint64_t* out;
  Match(const int32_t* in, uint64_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.match(in[self(gpu)]);
  }
};

struct ReduceAdd : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  ReduceAdd(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.reduce_add(in[self(gpu)]);
  }
};

struct ReduceMax : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  ReduceMax(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.reduce_max(in[self(gpu)]);
  }
};

// Each thread reads the 16 bytes around its own value.
template <class T>
struct LoadPack : TestKernel<> {
  const T* in;
  T* out;  // their sum
  LoadPack(const T* in, T* out) : in(in), out(out) {}
  template <class Thread>
  struct Shared {
    typename Thread::template array<T, kThreads> value;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    gpu.sync_block();
    const port::Pack<T> pack =
        gpu.load_pack(shared.value, gpu.thread() / port::Pack<T>::kItems * port::Pack<T>::kItems);
    T sum = 0;
    for (const T& item : pack.item) sum += item;
    out[self(gpu)] = sum;
  }
};

// Each warp reverses its part of shared memory, and writes over what another lane wrote to global memory.
struct SyncWarp : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  SyncWarp(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  struct Shared {
    typename Thread::template array<int32_t, kThreads> value;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    const int last = gpu.warp() * Thread::warp_size + Thread::warp_size - 1;
    shared.value(gpu.thread()) = in[self(gpu)];
    out[self(gpu) - gpu.thread() + last - gpu.lane()] = -1;
    gpu.sync_warp();
    out[self(gpu)] = shared.value(last - gpu.lane());
  }
};

// ---- block, cluster, grid ----

struct SyncBlock : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  SyncBlock(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  struct Shared {
    typename Thread::template array<int32_t, kThreads> value;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    gpu.sync_block();
    out[self(gpu)] = shared.value(kThreads - 1 - gpu.thread());
  }
};

inline constexpr int kClusterSize = 4;

struct ClusterPosition {
  int32_t cluster, rank;
};

struct WhereInCluster : TestKernel<kClusterSize> {
  ClusterPosition* out;
  explicit WhereInCluster(ClusterPosition* out) : out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = {gpu.template cluster<kClusterSize>(), gpu.template cluster_rank<kClusterSize>()};
  }
};

// Each block reads its right neighbour's shared memory, around the cluster.
struct ReadNeighbour : TestKernel<kClusterSize> {
  const int32_t* in;
  int32_t* out;
  ReadNeighbour(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  struct Shared {
    typename Thread::template array<int32_t, kThreads> value;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    gpu.template sync_cluster<kClusterSize>();
    const int right = (gpu.template cluster_rank<kClusterSize>() + 1) % kClusterSize;
    out[self(gpu)] = gpu.template remote<kClusterSize>(shared, right).value(gpu.thread());
    gpu.template sync_cluster<kClusterSize>();
  }
};

// The same with the last barrier cut in two, and work between the halves.
struct ArriveCluster : ReadNeighbour {
  using ReadNeighbour::ReadNeighbour;
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    gpu.template sync_cluster<kClusterSize>();
    const int right = (gpu.template cluster_rank<kClusterSize>() + 1) % kClusterSize;
    const int32_t value = gpu.template remote<kClusterSize>(shared, right).value(gpu.thread());
    gpu.template arrive_cluster<kClusterSize>();
    out[self(gpu)] = value + gpu.reduce_add(0);
    gpu.template wait_cluster<kClusterSize>();
  }
};

// Each block sends its values to all blocks of the cluster, which add them up.
struct SendToAll : ReadNeighbour {
  using ReadNeighbour::ReadNeighbour;
  template <class Thread>
  struct Shared {
    typename Thread::template array<uint32_t, kClusterSize * kThreads> received;
    typename Thread::inbox inbox;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    if (gpu.thread() == 0) gpu.template open_inbox<kClusterSize>(shared.inbox, kClusterSize * kThreads * 4);
    gpu.template arrive_cluster<kClusterSize>();
    gpu.template wait_cluster<kClusterSize>();
    if (gpu.thread() < kThreads / 4) {
      const int own = 4 * gpu.thread();
      const int32_t* from = in + gpu.block() * kThreads + own;
      const port::Vec4 four{from[0], from[1], from[2], from[3]};
      for (int to = 0; to < kClusterSize; ++to) {
        gpu.template send4<kClusterSize>(shared.inbox, shared.received,
                                         gpu.template cluster_rank<kClusterSize>() * kThreads + own, four,
                                         to);
      }
    }
    gpu.template await_inbox<kClusterSize>(shared.inbox);
    uint32_t sum = 0;
    for (int from = 0; from < kClusterSize; ++from) sum += shared.received(from * kThreads + gpu.thread());
    out[self(gpu)] = static_cast<int32_t>(sum);
  }
};

// A cluster of one block: its barrier is the block's.
struct LoneCluster : SyncBlock {
  using SyncBlock::SyncBlock;
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    gpu.template sync_cluster<1>();
    const int32_t value = shared.value(kThreads - 1 - gpu.thread());
    gpu.template arrive_cluster<1>();
    out[self(gpu)] = value + gpu.template cluster_rank<1>() + gpu.template cluster<1>() - gpu.block();
    gpu.template wait_cluster<1>();
  }
};

// The first warp of a block and the others, each past barriers of their own.
struct SyncWarps : SyncBlock {
  using SyncBlock::SyncBlock;
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    constexpr int kWarps = kThreads / Thread::warp_size;
    auto& shared = gpu.template shared<Shared<Thread>>();
    shared.value(gpu.thread()) = in[self(gpu)];
    int from = gpu.thread();
    if constexpr (kWarps > 1 && Thread::has_clusters) {  // where a part may have a barrier
      constexpr int kOthers = kThreads - Thread::warp_size;
      if (gpu.warp() == 0) {
        gpu.template sync_warps<0, 1, kWarps>();
        from = Thread::warp_size - 1 - from;
      } else {
        gpu.template sync_warps<1, kWarps - 1, kWarps>();
        from = Thread::warp_size + (from - Thread::warp_size + 7) % kOthers;
      }
    } else {
      gpu.template sync_warps<0, kWarps, kWarps>();
    }
    out[self(gpu)] = shared.value(from);
  }
};

struct SyncGrid : TestKernel<1, true> {
  const int32_t* in;
  int32_t* middle;
  int32_t* out;
  SyncGrid(const int32_t* in, int32_t* middle, int32_t* out) : in(in), middle(middle), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    middle[self(gpu)] = in[self(gpu)];
    gpu.sync_grid();
    out[self(gpu)] = middle[gpu.blocks() * gpu.threads() - 1 - self(gpu)];
  }
};

// ---- shared memory ----

// Thread i works on cell i % kCells. Each fetch_add must return another value: they are 0, 1, 2, … once.
struct SharedAtomics : TestKernel<> {
  static constexpr int kCells = 8;
  int32_t* added;
  uint32_t* added_unsigned;
  uint32_t* bits;
  uint64_t* wide_bits;
  int32_t* fetched;
  template <class Thread>
  struct Shared {
    typename Thread::template array<int32_t, kCells> added;
    typename Thread::template array<uint32_t, kCells> added_unsigned;
    typename Thread::template array<uint32_t, kCells> bits;
    typename Thread::template array<uint64_t, kCells> wide_bits;
    typename Thread::template array<int32_t, kCells> counter;
  };
  SharedAtomics(int32_t* added, uint32_t* added_unsigned, uint32_t* bits, uint64_t* wide_bits,
                int32_t* fetched)
      : added(added), added_unsigned(added_unsigned), bits(bits), wide_bits(wide_bits), fetched(fetched) {}

  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    if (gpu.thread() < kCells) {
      shared.added(gpu.thread()) = 0;
      shared.added_unsigned(gpu.thread()) = 0;
      shared.counter(gpu.thread()) = 0;
    }
    const int cell = gpu.thread() % kCells;
    gpu.set(shared.bits(cell), uint32_t{0});  // by many
    gpu.set(shared.wide_bits(cell), uint64_t{0});
    gpu.sync_block();
    gpu.add(shared.added(cell), -gpu.thread());
    gpu.add(shared.added_unsigned(cell), 1u);
    gpu.or_bits(shared.bits(cell), uint32_t{1} << (gpu.thread() / kCells));
    gpu.or_bits(shared.wide_bits(cell), uint64_t{1} << (4 * (gpu.thread() / kCells)));
    fetched[self(gpu)] = gpu.fetch_add(shared.counter(cell), 1);
    gpu.sync_block();
    if (gpu.thread() < kCells) {
      const int at = gpu.block() * kCells + gpu.thread();
      added[at] = shared.added(gpu.thread());
      added_unsigned[at] = shared.added_unsigned(gpu.thread());
      bits[at] = shared.bits(gpu.thread());
      wide_bits[at] = shared.wide_bits(gpu.thread());
    }
  }
};

// Two groups of threads clear a range each, and nothing else.
struct Zero : TestKernel<> {
  static constexpr int kCells = 512;
  int32_t* out;  // [blocks * kCells]
  explicit Zero(int32_t* out) : out(out) {}
  template <class Thread>
  struct Shared {
    alignas(16) typename Thread::template array<int32_t, kCells> words;
    alignas(16) typename Thread::template array<uint16_t, kCells> halves;
  };
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    auto& shared = gpu.template shared<Shared<Thread>>();
    for (int i = gpu.thread(); i < kCells; i += kThreads) {
      shared.words(i) = 1;
      shared.halves(i) = 2;
    }
    gpu.sync_block();
    constexpr int kHalf = kThreads / 2;
    if (gpu.thread() < kHalf) {
      gpu.zero(shared.words, 4, 400, gpu.thread(), kHalf);
    } else {
      gpu.zero(shared.halves, 8, 160, gpu.thread() - kHalf, kHalf);
    }
    gpu.sync_block();
    for (int i = gpu.thread(); i < kCells; i += kThreads) {
      out[gpu.block() * kCells + i] = shared.words(i) + shared.halves(i);
    }
  }
};

// ---- global memory ----

template <class T>
struct LoadStore : TestKernel<> {
  const T* in;
  T* out;
  LoadStore(const T* in, T* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    gpu.store(out + self(gpu), gpu.load(in + self(gpu)));
  }
};

struct LoadStore4 : TestKernel<> {
  const int32_t* in;
  int32_t* out;
  LoadStore4(const int32_t* in, int32_t* out) : in(in), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    const port::Vec4 v = gpu.load4(gpu.at_hand(in) + 4 * self(gpu));
    gpu.store4(out + 4 * self(gpu), {v.w, v.z, v.y, v.x});
  }
};

// Each block passes a message on to the next through plain memory, behind a flag.
template <class Flag>
struct PassOn : TestKernel<1, true> {
  int32_t* message;  // [blocks + 1]; the first is given
  Flag* flag;        // [blocks + 1]; 0, but for the first
  PassOn(int32_t* message, Flag* flag) : message(message), flag(flag) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    if (gpu.thread() != 0) return;
    while (gpu.load_acquire(flag + gpu.block()) == 0) gpu.pause();
    message[gpu.block() + 1] = message[gpu.block()] + 1;
    gpu.store_release(flag + gpu.block() + 1, Flag{1});
  }
};

struct FetchAdd : TestKernel<> {
  int32_t* counter;
  int32_t* out;
  FetchAdd(int32_t* counter, int32_t* out) : counter(counter), out(out) {}
  template <class Thread>
  TY_DEVICE void operator()(Thread& gpu) const {
    out[self(gpu)] = gpu.fetch_add(counter, 2);
  }
};

}  // namespace tokenyard::tests::kernels
