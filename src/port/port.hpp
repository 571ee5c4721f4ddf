// What a port is.
//
// A kernel is a struct: its fields are the launch arguments, its call operator the code of one thread.
// The operator takes a port's `Thread`, and everything that a GPU offers comes through it:
//
//   template <int kThreads>
//   struct Doubler {
//     static constexpr int threads = kThreads;   // block size; a multiple of the warp's width
//     static constexpr int cluster = 1;          // blocks in a cluster; > 1 only if Port::has_clusters
//     static constexpr bool cooperative = false; // all blocks must be resident at once
//     static constexpr int resident = 1024;      // optional, CUDA: threads a multiprocessor should hold
//     template <class Thread> struct Shared {    // one per block; uninitialised at the start
//       typename Thread::template array<int32_t, kThreads> value;
//     };
//     const int32_t* in;
//     int32_t* out;
//     template <class Thread> TY_DEVICE void operator()(Thread& gpu) const {
//       auto& shared = gpu.template shared<Shared<Thread>>();
//       shared.value(gpu.thread()) = in[gpu.thread()];   // arrays are indexed with ()
//       gpu.sync_block();
//       out[gpu.thread()] = 2 * shared.value(gpu.threads() - 1 - gpu.thread());
//     }
//   };
//
// Thread, in every port (cuda.hpp, hip.hpp, host.hpp). `M` is Thread::lane_mask, as wide as the warp.
//
//   static constexpr int warp_size; using lane_mask = uint32_t or uint64_t;
//   static constexpr bool has_clusters;
//   template <class T, int N> array        N elements in shared memory; array(i) is the i-th
//
//   where am I    int thread(), threads(), block(), blocks(), lane(), warp(), warps()
//                 int thread_at_hand()                          thread(), by all lanes of the warp: read once
//                                                             and not at each use, as compilers like to,
//                                                             which takes as long as twenty instructions
//                 int cluster_rank<Size>(), cluster<Size>()     block() % Size, block() / Size
//                 M lanes_below()                               bits of the lanes before this one
//   warp          T shfl(T, int lane)      T shfl_up(T, int delta)      T shfl_xor(T, int mask)
//                 M ballot(bool)           bool any(bool)               M match(int32_t)
//                 int32_t reduce_add(int32_t)                   sum over the warp, to all lanes
//                 int32_t reduce_max(int32_t)                   the highest, to all lanes
//                 void sync_warp()                              orders memory among the lanes
//                 All lanes of the warp must take part in each; T has 4 or 8 bytes.
//   block         void sync_block()
//                 void sync_warps<first, count, warps>()        of some of the block's `warps`, the first or
//                 the
//                                                             last; of all: sync_block(). HIP: all only
//   cluster       void sync_cluster<Size>()                     orders shared memory among its blocks;
//                                                             Size 1: sync_block()
//                 void arrive_cluster<Size>()                 a barrier in two halves that orders no memory
//                 void wait_cluster<Size>()                   but the opening of inboxes
//                 S& remote<Size>(S& shared, int rank)          a neighbour's shared memory, to be read
//                 (a block must not end while a neighbour may still read: arrive_cluster, wait_cluster)
//                 using inbox                                   in shared memory: counts what neighbours send
//                 void open_inbox<Size>(inbox&, int bytes)      by one thread, once a launch; before the
//                                                             first send there is a wait_cluster
//                 void send4<Size>(inbox&, array<uint32_t, N>&, int index, Vec4, int rank)
//                                                             16 bytes to the same array of a neighbour,
//                                                             counted in its inbox; index in steps of 4
//                 void await_inbox<Size>(inbox&)                until its own has all that it was opened for,
//                                                             which it then may read
//   grid          void sync_grid()                              cooperative launches only
//   shared memory void add(T& cell, T)     void or_bits(T& cell, T)     no value returned, relaxed
//                 T fetch_add(T& cell, T)                 void set(T& cell, T), to one value by many
//                 void zero(array&, int begin, int count, int worker, int workers)
//                 void zero<int count, int workers>(array&, int begin, int worker)
//                 set a range to 0, shared by `workers` threads; begin and count in units of 16 bytes; the
//                 second compiles to straight code
//                 Pack<T> load_pack(array<T, N>&, int index)    16 bytes at once; index in steps of them
//                 `T&` is whatever array(i) returns; T: int32_t, uint32_t, and for or_bits uint64_t too
//   global memory T load(const T*)  void store(T*, T)           relaxed, device scope, 4 or 8 bytes
//                 T load_acquire(const T*)  void store_release(T*, T)
//                 T fetch_add(T* , T)                           relaxed, device scope
//                 Vec4 load4(const int32_t*)  void store4(int32_t*, Vec4)    16 bytes, 16-byte aligned

//                 const T* at_hand(const T*)    the address, computed once and not at each use
//
//                 Everything else reads and writes through plain pointers.
//   launches      void let_next_begin()    a launch that is linked to this one may begin when all blocks said
//   so
//                 void await_previous()    until the launch that this one is linked to has ended, and all
//                 that it
//                                          wrote is seen; by every thread, before it touches global memory
//   waiting       void delay()             for about as long as a store takes to be seen by other blocks
//                 void pause()             in the body of a loop that polls another block
//   approximate   float exp2(float)        2^x to 2 units in the last place; below 2^-126 it may be 0
//                 float reciprocal(float)  1/x to 1, for 2^-126 <= x < 2^126; 0 for infinity
//                 The same bits for the same number on one device. What is exact is in floats.hpp.
//   bits          int popcount(M)          int lowest(M)        index of the lowest set bit, M != 0
//
// Host side, in every port:
//
//   struct Port { using Thread; static Status launch(const Kernel&, int blocks, void* stream, bool linked);
//   ... }
//
// A linked launch may begin before the launch before it in the stream has ended (where a device can), which
// hides how long a launch takes to begin. Only for kernels that call await_previous().
// A port's `launch` checks what it is given (threads, clusters, residency) and returns an error of the
// driver as a Status; see launch() in each port.
#pragma once

#include <cstdint>

// Code of one thread. What seldom runs stays out of the way: a kernel of few blocks takes as long as its
// instructions take to come, and they come in the order in which they stand.
#if defined(__HIP__)  // spelt out: a kernel may come before HIP's header
#define TY_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#define TY_DEVICE_SELDOM TY_DEVICE  // a call would need memory of each thread's own
#define TY_HOST_DEVICE __attribute__((host)) TY_DEVICE
#elif defined(__CUDACC__)
#define TY_DEVICE __device__ __forceinline__
#define TY_DEVICE_SELDOM __device__ __noinline__
#define TY_HOST_DEVICE __host__ TY_DEVICE
#else
#define TY_DEVICE inline
#define TY_DEVICE_SELDOM inline
#define TY_HOST_DEVICE inline
#endif

namespace tokenyard::port {

struct alignas(16) Vec4 {
  int32_t x, y, z, w;
};

// 16 bytes of neighbouring values.
template <class T>
struct alignas(16) Pack {
  static constexpr int kItems = 16 / sizeof(T);
  T item[kItems];
};

// What a kernel says of the threads that a multiprocessor should hold at once: it gets no more registers than
// leave room for them. 0: nothing.
template <class Kernel>
constexpr int resident_threads() {
  if constexpr (requires { Kernel::resident; }) {
    return Kernel::resident;
  } else {
    return 0;
  }
}

// std::min and std::max take references, which device code would have to be told about.
template <class T>
constexpr TY_HOST_DEVICE T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr TY_HOST_DEVICE T max_of(T a, T b) {
  return b < a ? a : b;
}

}  // namespace tokenyard::port
