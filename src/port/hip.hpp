// The HIP port for cards with waves of 64 lanes (gfx9): see port.hpp for what each operation promises.
#pragma once

#include <hip/hip_runtime.h>

#include "port/port.hpp"
#include "runtime/status.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::hip {

template <class T, int N>
struct alignas(16) SharedArray {
  T elements[N];
  TY_DEVICE T& operator()(int i) { return elements[i]; }
  TY_DEVICE const T& operator()(int i) const { return elements[i]; }
};

class Thread {
 public:
  static constexpr int warp_size = 64;
  using lane_mask = uint64_t;
  static constexpr bool has_clusters = false;
  template <class T, int N>
  using array = SharedArray<T, N>;

  template <class S>
  TY_DEVICE S& shared() {
    __shared__ S storage;
    return storage;
  }

  TY_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  TY_DEVICE int thread_at_hand() const { return thread(); }
  TY_DEVICE int threads() const { return static_cast<int>(blockDim.x); }
  TY_DEVICE int block() const { return static_cast<int>(blockIdx.x); }
  TY_DEVICE int blocks() const { return static_cast<int>(gridDim.x); }
  TY_DEVICE int lane() const { return static_cast<int>(threadIdx.x % warp_size); }
  // The same in all lanes, which the compiler cannot know.
  TY_DEVICE int warp() const {
    return __builtin_amdgcn_readfirstlane(static_cast<int>(threadIdx.x / warp_size));
  }
  TY_DEVICE int warps() const { return threads() / warp_size; }
  TY_DEVICE lane_mask lanes_below() const { return (lane_mask{1} << lane()) - 1; }

  template <class T>
  TY_DEVICE T shfl(T value, int lane) {
    struct Words {
      int word[sizeof(T) / sizeof(int)];
    };
    Words words = __builtin_bit_cast(Words, value);
    for (int& word : words.word) word = __builtin_amdgcn_ds_bpermute(lane * 4, word);
    return __builtin_bit_cast(T, words);
  }
  template <class T>
  TY_DEVICE T shfl_up(T value, int delta) {
    return shfl(value, lane() < delta ? lane() : lane() - delta);
  }
  template <class T>
  TY_DEVICE T shfl_xor(T value, int mask) {
    return shfl(value, lane() ^ mask);
  }
  TY_DEVICE lane_mask ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }
  TY_DEVICE bool any(bool predicate) { return ballot(predicate) != 0; }
  // There is no instruction for it: lanes match that agree in each bit. Four bits at a time, until all lanes
  // have the same bits left, which small values soon have.
  TY_DEVICE lane_mask match(int32_t value) {
    lane_mask agree = ~lane_mask{0};
    auto left = static_cast<uint32_t>(value);
    while (any(left != first_lane(left))) {
#pragma unroll
      for (int bit = 0; bit < 4; ++bit) {
        const bool set = (left >> bit & 1) != 0;
        const lane_mask lanes = ballot(set);
        agree &= set ? lanes : ~lanes;
      }
      left >>= 4;
    }
    return agree;
  }
  // Inside each row of 16 lanes, then from row to row: the last lane has the sum.
  TY_DEVICE int32_t reduce_add(int32_t value) {
    value += lanes_moved<kRowShiftRight + 1>(value);
    value += lanes_moved<kRowShiftRight + 2>(value);
    value += lanes_moved<kRowShiftRight + 4>(value);
    value += lanes_moved<kRowShiftRight + 8>(value);
    value += lanes_moved<kRowBroadcast15, 0b1010>(value);
    value += lanes_moved<kRowBroadcast31, 0b1100>(value);
    return __builtin_amdgcn_readlane(value, warp_size - 1);
  }
  TY_DEVICE int32_t reduce_max(int32_t value) {
    value = max_of(value, lanes_moved<kRowShiftRight + 1>(value, value));
    value = max_of(value, lanes_moved<kRowShiftRight + 2>(value, value));
    value = max_of(value, lanes_moved<kRowShiftRight + 4>(value, value));
    value = max_of(value, lanes_moved<kRowShiftRight + 8>(value, value));
    value = max_of(value, lanes_moved<kRowBroadcast15, 0b1010>(value, value));
    value = max_of(value, lanes_moved<kRowBroadcast31, 0b1100>(value, value));
    return __builtin_amdgcn_readlane(value, warp_size - 1);
  }
  // The lanes of a wave run in step: only the compiler must not move accesses across.
  TY_DEVICE void sync_warp() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
  }

  TY_DEVICE void sync_block() { __syncthreads(); }
  template <int kFirst, int kCount, int kWarps>
  TY_DEVICE void sync_warps() {
    static_assert(kCount == kWarps, "these cards have no barrier for a part of a block");
    __syncthreads();
  }

  // A cluster is one block here.
  template <int Size>
  TY_DEVICE int cluster_rank() const {
    return 0;
  }
  template <int Size>
  TY_DEVICE int cluster() const {
    return block();
  }
  template <int Size>
  TY_DEVICE void arrive_cluster() {}
  template <int Size>
  TY_DEVICE void wait_cluster() {}
  template <int Size>
  TY_DEVICE void sync_cluster() {
    sync_block();
  }
  template <int Size, class S>
  TY_DEVICE S& remote(S& shared, int) {
    return shared;
  }

  struct inbox {};
  template <int Size>
  TY_DEVICE void open_inbox(inbox&, int) {}
  template <int Size, int N>
  TY_DEVICE void send4(inbox&, SharedArray<uint32_t, N>&, int, Vec4, int) {}
  template <int Size>
  TY_DEVICE void await_inbox(inbox&) {}

  // Nothing is linked here.
  TY_DEVICE void let_next_begin() {}
  TY_DEVICE void await_previous() {}

  // What cooperative_groups calls; its header does not compile with every clang.
  TY_DEVICE void sync_grid() { __ockl_grid_sync(); }

  template <class T>
  TY_DEVICE void add(T& cell, T value) {
    fetch_add(cell, value);
  }
  template <class T>
  TY_DEVICE void or_bits(T& cell, T bits) {
    __hip_atomic_fetch_or(&cell, bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  template <class T>
  TY_DEVICE void set(T& cell, T value) {
    __hip_atomic_store(&cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  template <class T>
  TY_DEVICE T fetch_add(T& cell, T value) {
    return __hip_atomic_fetch_add(&cell, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }

  template <class T, int N>
  TY_DEVICE Pack<T> load_pack(const SharedArray<T, N>& cells, int index) {
    return *reinterpret_cast<const Pack<T>*>(cells.elements + index);
  }

  template <class T, int N>
  TY_DEVICE void zero(SharedArray<T, N>& cells, int begin, int count, int worker, int workers) {
    constexpr int kPerVector = sizeof(Vec4) / sizeof(T);
    auto* const vectors = reinterpret_cast<Vec4*>(cells.elements + begin);
#pragma unroll 1
    for (int i = worker; i < count / kPerVector; i += workers) vectors[i] = Vec4{0, 0, 0, 0};
  }
  template <int kCount, int kWorkers, class T, int N>
  TY_DEVICE void zero(SharedArray<T, N>& cells, int begin, int worker) {
    constexpr int kVectors = kCount * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(Vec4));
    auto* const vectors = reinterpret_cast<Vec4*>(cells.elements + begin);
#pragma unroll
    for (int i = 0; i < kVectors; i += kWorkers) {
      if (i + kWorkers <= kVectors || worker < kVectors - i) vectors[i + worker] = Vec4{0, 0, 0, 0};
    }
  }

  template <class T>
  TY_DEVICE T load(const T* address) {
    return __hip_atomic_load(address, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
  template <class T>
  TY_DEVICE void store(T* address, T value) {
    __hip_atomic_store(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
  template <class T>
  TY_DEVICE T load_acquire(const T* address) {
    return __hip_atomic_load(address, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
  }
  template <class T>
  TY_DEVICE void store_release(T* address, T value) {
    __hip_atomic_store(address, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
  template <class T>
  TY_DEVICE T fetch_add(T* address, T value) {
    return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }

  template <class T>
  TY_DEVICE const T* at_hand(const T* address) {
    return address;
  }
  TY_DEVICE Vec4 load4(const int32_t* address) { return *reinterpret_cast<const Vec4*>(address); }
  TY_DEVICE void store4(int32_t* address, Vec4 value) { *reinterpret_cast<Vec4*>(address) = value; }

  TY_DEVICE void delay() { __builtin_amdgcn_s_sleep(8); }  // in steps of 64 cycles
  TY_DEVICE void pause() { __builtin_amdgcn_s_sleep(1); }

  TY_DEVICE float exp2(float x) { return __builtin_exp2f(x); }
  TY_DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

  TY_DEVICE int popcount(lane_mask mask) { return __builtin_popcountll(mask); }
  TY_DEVICE int lowest(lane_mask mask) { return __builtin_ctzll(mask); }

 private:
  // Controls of a data-parallel primitive: which lane each one reads.
  static constexpr int kRowShiftRight = 0x110;
  static constexpr int kRowBroadcast15 = 0x142;  // a row's last lane to the next row
  static constexpr int kRowBroadcast31 = 0x143;  // lane 31 to the upper half
  // The value of another lane; `otherwise` where there is none, or in a row that `rows` leaves out.
  template <int kControl, int kRows = 0b1111>
  TY_DEVICE int32_t lanes_moved(int32_t value, int32_t otherwise = 0) {
    return __builtin_amdgcn_update_dpp(otherwise, value, kControl, kRows, 0b1111, false);
  }
  static TY_DEVICE int32_t max_of(int32_t a, int32_t b) { return a > b ? a : b; }
  TY_DEVICE uint32_t first_lane(uint32_t value) {
    return static_cast<uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(value)));
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads) run(const Kernel kernel) {
  Thread thread;
  kernel(thread);
}

inline Status to_status(hipError_t error, const char* operation) {
  if (error == hipSuccess) return {};
  (void)hipGetLastError();  // do not leave it for the caller's next check
  return {TY_DEVICE_ERROR,
          text(operation, ": ", hipGetErrorString(error), " (", hipGetErrorName(error), ")")};
}

struct Port {
  using Thread = hip::Thread;
  static constexpr bool has_clusters = false;

  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, void* stream, bool /*linked*/ = false) {
    static_assert(Kernel::threads % Thread::warp_size == 0 && Kernel::threads <= 1024);
    static_assert(Kernel::cluster == 1, "no cluster on this vendor's cards");
    const void* const function = reinterpret_cast<const void*>(run<Kernel>);
    void* arguments[] = {const_cast<Kernel*>(&kernel)};
    const dim3 grid(static_cast<unsigned>(blocks));
    const dim3 block(Kernel::threads);
    hipError_t error;
    if constexpr (Kernel::cooperative) {
      error =
          hipLaunchCooperativeKernel(function, grid, block, arguments, 0, static_cast<hipStream_t>(stream));
    } else {
      error = hipLaunchKernel(function, grid, block, arguments, 0, static_cast<hipStream_t>(stream));
    }
    return to_status(error, "launch");
  }

  // Blocks of the kernel that the current device can hold at once.
  template <class Kernel>
  static Status resident_blocks(int multiprocessors, int& blocks) {
    int per_multiprocessor = 0;
    TY_RETURN_IF_ERROR(
        to_status(hipOccupancyMaxActiveBlocksPerMultiprocessor(
                      &per_multiprocessor, reinterpret_cast<const void*>(run<Kernel>), Kernel::threads, 0),
                  "hipOccupancyMaxActiveBlocksPerMultiprocessor"));
    blocks = per_multiprocessor * multiprocessors;
    return {};
  }
};

}  // namespace tokenyard::port::hip
