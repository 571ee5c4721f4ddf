// The host port: runs kernels on the CPU under the SIMT executor, to test them. See port/port.hpp for what
// each operation means, simt/executor.hpp for the mistakes that it finds.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "port/port.hpp"
#include "port/simt/executor.hpp"
#include "port/simt/shared.hpp"
#include "runtime/status.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::host {

using simt::Site;

template <int WarpSize>
class Thread {
  static_assert(WarpSize == 32 || WarpSize == 64);

 public:
  static constexpr int warp_size = WarpSize;
  using lane_mask = std::conditional_t<WarpSize == 32, uint32_t, uint64_t>;
  static constexpr bool has_clusters = true;
  template <class T, int N>
  using array = simt::Array<T, N>;

  Thread(int block, int thread, int blocks, int threads)
      : block_(block), thread_(thread), blocks_(blocks), threads_(threads) {}

  // where am I
  int thread() const { return thread_; }
  int thread_at_hand() const { return thread(); }
  int threads() const { return threads_; }
  int block() const { return block_; }
  int blocks() const { return blocks_; }
  int lane() const { return thread_ % WarpSize; }
  int warp() const { return thread_ / WarpSize; }
  int warps() const { return threads_ / WarpSize; }
  template <int Size>
  int cluster_rank() const {
    return block_ % Size;
  }
  template <int Size>
  int cluster() const {
    return block_ / Size;
  }
  lane_mask lanes_below() const { return (lane_mask{1} << lane()) - 1; }

  // warp
  template <class T>
  simt::Value<T> shfl(T&& value, int lane, const Site& site = Site::current()) const {
    return exchange(simt::Collective::kShfl, static_cast<simt::Value<T>>(std::forward<T>(value)), lane, site);
  }
  template <class T>
  simt::Value<T> shfl_up(T&& value, int delta, const Site& site = Site::current()) const {
    return exchange(simt::Collective::kShflUp, static_cast<simt::Value<T>>(std::forward<T>(value)), delta,
                    site);
  }
  template <class T>
  simt::Value<T> shfl_xor(T&& value, int mask, const Site& site = Site::current()) const {
    return exchange(simt::Collective::kShflXor, static_cast<simt::Value<T>>(std::forward<T>(value)), mask,
                    site);
  }
  lane_mask ballot(bool vote, const Site& site = Site::current()) const {
    return static_cast<lane_mask>(simt::collective(simt::Collective::kBallot, vote, 0, site));
  }
  bool any(bool vote, const Site& site = Site::current()) const {
    return simt::collective(simt::Collective::kAny, vote, 0, site) != 0;
  }
  lane_mask match(int32_t value, const Site& site = Site::current()) const {
    return static_cast<lane_mask>(simt::collective(simt::Collective::kMatch, simt::to_bits(value), 0, site));
  }
  int32_t reduce_add(int32_t value, const Site& site = Site::current()) const {
    return simt::from_bits<int32_t>(
        simt::collective(simt::Collective::kReduceAdd, simt::to_bits(value), 0, site));
  }
  int32_t reduce_max(int32_t value, const Site& site = Site::current()) const {
    return simt::from_bits<int32_t>(
        simt::collective(simt::Collective::kReduceMax, simt::to_bits(value), 0, site));
  }
  void sync_warp(const Site& site = Site::current()) const {
    simt::collective(simt::Collective::kSyncWarp, 0, 0, site);
  }

  // block, cluster, grid
  void sync_block(const Site& site = Site::current()) const { simt::sync_block(site); }
  template <int kFirst, int kCount, int kWarps>
  void sync_warps(const Site& site = Site::current()) const {
    if constexpr (kCount == kWarps) {
      sync_block(site);
    } else {
      simt::sync_warps(kFirst, kCount, site);
    }
  }
  template <int Size>
  void sync_cluster(const Site& site = Site::current()) const {
    if constexpr (Size > 1) {
      simt::sync_cluster(Size, site);
    } else {
      sync_block(site);
    }
  }
  template <int Size>
  void arrive_cluster(const Site& site = Site::current()) const {
    if constexpr (Size > 1) simt::arrive_cluster(Size, site);
  }
  template <int Size>
  void wait_cluster(const Site& site = Site::current()) const {
    if constexpr (Size > 1) simt::wait_cluster(site);
  }
  template <int Size, class S>
  S& remote(S& shared, int rank, const Site& site = Site::current()) const {
    return *static_cast<S*>(simt::remote_memory(&shared, Size, rank, site));
  }
  using inbox = simt::Inbox;
  template <int Size>
  void open_inbox(inbox& own, int bytes, const Site& site = Site::current()) const {
    own.open(static_cast<uint32_t>(bytes), site);
  }
  template <int Size, int N>
  void send4(inbox& own, simt::Array<uint32_t, N>& cells, int index, Vec4 value, int rank,
             const Site& site = Site::current()) const {
    const int32_t words[] = {value.x, value.y, value.z, value.w};
    if (index % 4 != 0) simt::fail(text("send4() to index ", index, "; expected a multiple of 4"), site);
    auto& there = remote<Size>(cells, rank, site);
    for (int i = 0; i < 4; ++i) there.receive(index + i, static_cast<uint32_t>(words[i]), site);
    remote<Size>(own, rank, site).receive(sizeof(Vec4), site);
  }
  template <int Size>
  void await_inbox(inbox& own, const Site& site = Site::current()) const {
    while (!own.full(site)) pause(site);
  }
  void sync_grid(const Site& site = Site::current()) const { simt::sync_grid(site); }

  // shared memory
  template <class S>
  S& shared(const Site& site = Site::current()) const {
    static_assert(std::is_trivially_default_constructible_v<S> && std::is_trivially_destructible_v<S>);
    return *static_cast<S*>(simt::shared_memory(sizeof(S), typeid(S), site));
  }
  template <class T>
  void add(const simt::Cell<T>& cell, std::type_identity_t<T> value) const {
    cell.fetch_add(value);
  }
  template <class T>
  void or_bits(const simt::Cell<T>& cell, std::type_identity_t<T> bits) const {
    cell.fetch_or(bits);
  }
  template <class T>
  void set(const simt::Cell<T>& cell, std::type_identity_t<T> value) const {
    cell.store(value);
  }
  template <class T>
  T fetch_add(const simt::Cell<T>& cell, std::type_identity_t<T> value) const {
    return cell.fetch_add(value);
  }
  template <class T, int N>
  Pack<T> load_pack(simt::Array<T, N>& cells, int index, const Site& site = Site::current()) const {
    if (index % Pack<T>::kItems != 0) {
      simt::fail(text("load_pack() from index ", index, "; expected a multiple of ", Pack<T>::kItems), site);
    }
    Pack<T> pack;
    for (int i = 0; i < Pack<T>::kItems; ++i) pack.item[i] = cells(index + i, site);
    return pack;
  }
  template <class T, int N>
  void zero(simt::Array<T, N>& cells, int begin, int count, int worker, int workers,
            const Site& site = Site::current()) const {
    constexpr int kPerVector = sizeof(Vec4) / sizeof(T);
    if (begin % kPerVector != 0 || count % kPerVector != 0) {
      simt::fail(text("zero() of ", count, " cells from ", begin, "; expected multiples of ", kPerVector),
                 site);
    }
    for (int vector = worker; vector < count / kPerVector; vector += workers) {
      for (int i = 0; i < kPerVector; ++i) cells(begin + vector * kPerVector + i, site) = T{0};
    }
  }

  template <int kCount, int kWorkers, class T, int N>
  void zero(simt::Array<T, N>& cells, int begin, int worker, const Site& site = Site::current()) const {
    zero(cells, begin, kCount, worker, kWorkers, site);
  }

  // global memory
  template <class T>
  T load(const T* from, const Site& site = Site::current()) const {
    return load(from, std::memory_order_relaxed, site);
  }
  template <class T>
  T load_acquire(const T* from, const Site& site = Site::current()) const {
    return load(from, std::memory_order_acquire, site);
  }
  template <class T>
  void store(T* to, std::type_identity_t<T> value, const Site& site = Site::current()) const {
    store(to, value, std::memory_order_relaxed, site);
  }
  template <class T>
  void store_release(T* to, std::type_identity_t<T> value, const Site& site = Site::current()) const {
    store(to, value, std::memory_order_release, site);
  }
  template <class T>
  T fetch_add(T* at, std::type_identity_t<T> value, const Site& site = Site::current()) const {
    expect_aligned(at, sizeof(T), site);
    simt::before_add(value != 0, site);
    return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
  }

  template <class T>
  const T* at_hand(const T* address) const {
    return address;
  }
  Vec4 load4(const int32_t* from, const Site& site = Site::current()) const {
    expect_aligned(from, sizeof(Vec4), site);
    simt::expect_awaited(site);
    return {from[0], from[1], from[2], from[3]};
  }
  void store4(int32_t* to, Vec4 value, const Site& site = Site::current()) const {
    expect_aligned(to, sizeof(Vec4), site);
    simt::expect_awaited(site);
    to[0] = value.x;
    to[1] = value.y;
    to[2] = value.z;
    to[3] = value.w;
  }

  // launches: one ends before the next begins, but a linked one must not rely on it
  void let_next_begin() const {}
  void await_previous() const { simt::await_previous(); }

  // waiting
  void delay() const {}
  void pause(const Site& site = Site::current()) const { simt::pause(site); }

  // approximations
  static float exp2(float x) { return std::exp2(x); }
  static float reciprocal(float x) { return 1.0f / x; }

  // bits
  static int popcount(lane_mask mask) { return std::popcount(mask); }
  static int lowest(lane_mask mask, const Site& site = Site::current()) {
    if (mask == 0) simt::fail("lowest() of 0", site);
    return std::countr_zero(mask);
  }

 private:
  template <class T>
  static T exchange(simt::Collective kind, T value, int argument, const Site& site) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return simt::from_bits<T>(simt::collective(kind, simt::to_bits(value), argument, site));
  }

  template <class T>
  static T load(const T* from, std::memory_order order, const Site& site) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    expect_aligned(from, sizeof(T), site);
    simt::before_load(site);
    return std::atomic_ref(*const_cast<T*>(from)).load(order);
  }

  template <class T>
  static void store(T* to, T value, std::memory_order order, const Site& site) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    expect_aligned(to, sizeof(T), site);
    simt::before_store(to, simt::to_bits(value), sizeof(T), site);
    std::atomic_ref(*to).store(value, order);
  }

  static void expect_aligned(const void* address, size_t bytes, const Site& site) {
    if (reinterpret_cast<uintptr_t>(address) % bytes == 0) return;
    simt::fail(text("global memory at ", address, "; expected an address aligned to ", bytes, " bytes"),
               site);
  }

  int block_, thread_, blocks_, threads_;
};

template <int WarpSize>
struct Port {
  using Thread = host::Thread<WarpSize>;
  static constexpr bool has_clusters = Thread::has_clusters;

  // Runs the kernel and returns when it is done; `stream` has no meaning here. Besides the launch's own
  // errors it returns those that the executor finds in the kernel.
  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, void* /*stream*/, bool linked = false) {
    simt::Launch launch{};
    launch.type = &typeid(Kernel);
    launch.kernel = &kernel;
    launch.run_thread = [](const void* kernel, int block, int thread, int blocks) {
      Thread gpu(block, thread, blocks, Kernel::threads);
      (*static_cast<const Kernel*>(kernel))(gpu);
    };
    launch.blocks = blocks;
    launch.threads = Kernel::threads;
    launch.warp_size = WarpSize;
    launch.cluster = Kernel::cluster;
    launch.cooperative = Kernel::cooperative;
    launch.linked = linked;
    return simt::launch(launch);
  }

  // Blocks of the kernel that a device with these multiprocessors can hold at once.
  template <class Kernel>
  static Status resident_blocks(int multiprocessors, int& blocks) {
    blocks = simt::kThreadsPerMultiprocessor / Kernel::threads * multiprocessors / Kernel::cluster *
             Kernel::cluster;
    return {};
  }
};

}  // namespace tokenyard::port::host
