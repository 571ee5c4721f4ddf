// The CUDA port: see port.hpp for what each operation promises.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <set>

#include "port/port.hpp"
#include "runtime/status.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::cuda {

template <class T, int N>
struct alignas(16) SharedArray {
  T elements[N];
  __device__ __forceinline__ T& operator()(int i) { return elements[i]; }
  __device__ __forceinline__ const T& operator()(int i) const { return elements[i]; }
};

class Thread {
 public:
  static constexpr int warp_size = 32;
  using lane_mask = uint32_t;
  static constexpr bool has_clusters = true;
  template <class T, int N>
  using array = SharedArray<T, N>;

  template <class S>
  TY_DEVICE S& shared() {
    extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];
    uint32_t address = shared_address(dynamic_shared_memory);
    asm("" : "+r"(address));  // or every use finds it anew, which takes four instructions
    return *reinterpret_cast<S*>(__cvta_shared_to_generic(address));
  }

  TY_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  // From another lane, which is this one: the compiler cannot read it anew.
  TY_DEVICE int thread_at_hand() { return __shfl_sync(kAll, thread(), thread()); }
  TY_DEVICE int threads() const { return static_cast<int>(blockDim.x); }
  TY_DEVICE int block() const { return static_cast<int>(blockIdx.x); }
  TY_DEVICE int blocks() const { return static_cast<int>(gridDim.x); }
  TY_DEVICE int lane() const { return static_cast<int>(threadIdx.x % warp_size); }
  TY_DEVICE int warp() const { return static_cast<int>(threadIdx.x / warp_size); }
  TY_DEVICE int warps() const { return threads() / warp_size; }
  template <int Size>
  TY_DEVICE int cluster_rank() const {
    return static_cast<int>(blockIdx.x % Size);
  }
  template <int Size>
  TY_DEVICE int cluster() const {
    return static_cast<int>(blockIdx.x / Size);
  }
  TY_DEVICE lane_mask lanes_below() const { return (lane_mask{1} << lane()) - 1; }

  template <class T>
  TY_DEVICE T shfl(T value, int lane) {
    return __shfl_sync(kAll, value, lane);
  }
  template <class T>
  TY_DEVICE T shfl_up(T value, int delta) {
    return __shfl_up_sync(kAll, value, delta);
  }
  template <class T>
  TY_DEVICE T shfl_xor(T value, int mask) {
    return __shfl_xor_sync(kAll, value, mask);
  }
  TY_DEVICE lane_mask ballot(bool predicate) { return __ballot_sync(kAll, predicate); }
  TY_DEVICE bool any(bool predicate) { return __any_sync(kAll, predicate); }
  TY_DEVICE lane_mask match(int32_t value) { return __match_any_sync(kAll, value); }
  TY_DEVICE int32_t reduce_add(int32_t value) { return __reduce_add_sync(kAll, value); }
  TY_DEVICE int32_t reduce_max(int32_t value) { return __reduce_max_sync(kAll, value); }
  TY_DEVICE void sync_warp() { __syncwarp(); }

  TY_DEVICE void sync_block() { __syncthreads(); }
  template <int kFirst, int kCount, int kWarps>
  TY_DEVICE void sync_warps() {
    if constexpr (kCount == kWarps) {
      __syncthreads();
    } else {
      asm volatile("bar.sync %0, %1;" ::"n"(kFirst == 0 ? 1 : 2), "n"(kCount * warp_size) : "memory");
    }
  }

  // One warp releases for the block, which the block's barrier allows (causality order is transitive in the
  // PTX memory model), so that not every warp has to wait for its own.
  template <int Size>
  TY_DEVICE void sync_cluster() {
    __syncthreads();
    if constexpr (Size > 1) {
      if (warp() == 0) asm volatile("fence.acq_rel.cluster;" ::: "memory");
      asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
  }
  // Orders no memory: what was read from a neighbour is in registers already.
  template <int Size>
  TY_DEVICE void arrive_cluster() {
    if constexpr (Size > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  }
  template <int Size>
  TY_DEVICE void wait_cluster() {
    if constexpr (Size > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  template <int Size, class S>
  TY_DEVICE S& remote(S& shared, int rank) {
    uint64_t address;
    asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(reinterpret_cast<uint64_t>(&shared)), "r"(rank));
    return *reinterpret_cast<S*>(address);
  }

  // An mbarrier that counts bytes. What st.async brings is released to the cluster with its count, and the
  // wait acquires it: no fence, and no barrier among the senders.
  using inbox = uint64_t;
  template <int Size>
  TY_DEVICE void open_inbox(inbox& own, int bytes) {
    if constexpr (Size > 1) {
      const uint32_t address = shared_address(&own);
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(address), "r"(bytes) : "memory");
    }
  }
  template <int Size, int N>
  TY_DEVICE void send4(inbox& own, SharedArray<uint32_t, N>& cells, int index, Vec4 value, int rank) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
            "r"(remote_address(&cells.elements[index], rank)),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(remote_address(&own, rank))
        : "memory");
  }
  template <int Size>
  TY_DEVICE void await_inbox(inbox& own) {
    uint32_t full = 0;
    while (full == 0) {
      asm volatile(
          "{ .reg .pred full; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 full, [%1], 0; "
          "selp.u32 %0, 1, 0, full; }"
          : "=r"(full)
          : "r"(shared_address(&own))
          : "memory");
    }
  }

  // Without effect where nothing is linked.
  TY_DEVICE void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
  }
  TY_DEVICE void await_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  }

  // One counter per launch would need a workspace; the runtime's own barrier keeps it for cooperative grids.
  TY_DEVICE void sync_grid();

  template <class T>
  TY_DEVICE void add(T& cell, T value) {
    atomicAdd(&cell, value);
  }
  TY_DEVICE void or_bits(uint32_t& cell, uint32_t bits) { atomicOr(&cell, bits); }
  TY_DEVICE void or_bits(uint64_t& cell, uint64_t bits) {
    atomicOr(reinterpret_cast<unsigned long long*>(&cell), static_cast<unsigned long long>(bits));
  }
  template <class T>
  TY_DEVICE void set(T& cell, T value) {
    *static_cast<volatile T*>(&cell) = value;
  }
  template <class T>
  TY_DEVICE T fetch_add(T& cell, T value) {
    return atomicAdd(&cell, value);
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
    T value;
    if constexpr (sizeof(T) == 8) {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    } else {
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    }
    return value;
  }
  template <class T>
  TY_DEVICE void store(T* address, T value) {
    if constexpr (sizeof(T) == 8) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
    } else {
      asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
    }
  }
  template <class T>
  TY_DEVICE T load_acquire(const T* address) {
    T value;
    if constexpr (sizeof(T) == 8) {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    } else {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    }
    return value;
  }
  template <class T>
  TY_DEVICE void store_release(T* address, T value) {
    if constexpr (sizeof(T) == 8) {
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
    } else {
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
    }
  }
  template <class T>
  TY_DEVICE T fetch_add(T* address, T value) {
    return atomicAdd(address, value);
  }

  template <class T>
  TY_DEVICE const T* at_hand(const T* address) {
    size_t global = __cvta_generic_to_global(address);
    asm("" : "+l"(global));
    return static_cast<const T*>(__cvta_global_to_generic(global));
  }

  TY_DEVICE Vec4 load4(const int32_t* address) {
    const int4 v = *reinterpret_cast<const int4*>(address);
    return {v.x, v.y, v.z, v.w};
  }
  TY_DEVICE void store4(int32_t* address, Vec4 v) {
    *reinterpret_cast<int4*>(address) = make_int4(v.x, v.y, v.z, v.w);
  }

  TY_DEVICE void delay() {
    constexpr int64_t kCycles = 350;  // measured on an H200
    const int64_t start = clock64();
    while (clock64() - start < kCycles) {
    }
  }
  TY_DEVICE void pause() {}  // polling through L2 is slow enough

  TY_DEVICE float exp2(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
  }
  TY_DEVICE float reciprocal(float x) {
    float quotient;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(x));
    return quotient;
  }

  TY_DEVICE int popcount(lane_mask mask) { return __popc(mask); }
  // Of __ffs() the device has to turn the bits around first.
  TY_DEVICE int lowest(lane_mask mask) { return 31 - __clz(static_cast<int>(mask & (0u - mask))); }

 private:
  static constexpr unsigned kAll = 0xffffffffu;

  static TY_DEVICE uint32_t shared_address(const void* own) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(own));
  }
  static TY_DEVICE uint32_t remote_address(const void* own, int rank) {
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(own)), "r"(rank));
    return address;
  }
};

}  // namespace tokenyard::port::cuda

#include <cooperative_groups.h>

namespace tokenyard::port::cuda {

TY_DEVICE void Thread::sync_grid() { cooperative_groups::this_grid().sync(); }

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, resident_threads<Kernel>() / Kernel::threads)
    run(const __grid_constant__ Kernel kernel) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  Thread thread;
  kernel(thread);
#else
  if constexpr (Kernel::cluster > 1) {
    __trap();  // never launched: the device has no clusters
  } else {
    Thread thread;
    kernel(thread);
  }
#endif
}

inline Status to_status(cudaError_t error, const char* operation) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // do not leave it for the caller's next check
  return {TY_DEVICE_ERROR,
          text(operation, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")")};
}

struct Port {
  using Thread = cuda::Thread;
  static constexpr bool has_clusters = true;

  // What a kernel must be allowed before it is launched, once per kernel and device.
  template <class Kernel, cudaFuncAttribute kAttribute>
  static Status allow(int value) {
    static std::mutex mutex;
    static std::set<int> done;
    int device = 0;
    TY_RETURN_IF_ERROR(to_status(cudaGetDevice(&device), "cudaGetDevice"));
    const std::lock_guard lock(mutex);
    if (done.contains(device)) return {};
    TY_RETURN_IF_ERROR(
        to_status(cudaFuncSetAttribute(run<Kernel>, kAttribute, value), "cudaFuncSetAttribute"));
    done.insert(device);
    return {};
  }
  template <class Kernel>
  static Status allow_size() {
    constexpr size_t shared_bytes = sizeof(typename Kernel::template Shared<Thread>);
    if constexpr (shared_bytes > 48 * 1024) {
      TY_RETURN_IF_ERROR((allow<Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize>(shared_bytes)));
    }
    constexpr int kPortableCluster = 8;
    if constexpr (Kernel::cluster > kPortableCluster) {
      TY_RETURN_IF_ERROR((allow<Kernel, cudaFuncAttributeNonPortableClusterSizeAllowed>(1)));
    }
    return {};
  }

  template <class Kernel>
  static Status launch(const Kernel& kernel, int blocks, void* stream, bool linked = false) {
    constexpr size_t shared_bytes = sizeof(typename Kernel::template Shared<Thread>);
    TY_RETURN_IF_ERROR(allow_size<Kernel>());
    cudaLaunchAttribute attributes[3];
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(Kernel::threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    if constexpr (Kernel::cooperative) {
      attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
      attributes[config.numAttrs++].val.cooperative = 1;
    }
    if constexpr (Kernel::cluster > 1) {
      attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
      attributes[config.numAttrs].val.clusterDim.x = Kernel::cluster;
      attributes[config.numAttrs].val.clusterDim.y = 1;
      attributes[config.numAttrs++].val.clusterDim.z = 1;
    }
    if (linked) {
      attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    const cudaError_t error = cudaLaunchKernelEx(&config, run<Kernel>, kernel);
    return to_status(error, "cudaLaunchKernelEx");
  }

  // Blocks of the kernel that the current device can hold at once; 0 if its clusters do not fit at all.
  template <class Kernel>
  static Status resident_blocks(int multiprocessors, int& blocks) {
    constexpr size_t shared_bytes = sizeof(typename Kernel::template Shared<Thread>);
    TY_RETURN_IF_ERROR(allow_size<Kernel>());
    if constexpr (Kernel::cluster > 1) {
      cudaLaunchAttribute attribute;
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = Kernel::cluster;
      attribute.val.clusterDim.y = 1;
      attribute.val.clusterDim.z = 1;
      cudaLaunchConfig_t config{};
      config.gridDim = dim3(Kernel::cluster);
      config.blockDim = dim3(Kernel::threads);
      config.dynamicSmemBytes = shared_bytes;
      config.attrs = &attribute;
      config.numAttrs = 1;
      int clusters = 0;
      TY_RETURN_IF_ERROR(to_status(cudaOccupancyMaxActiveClusters(&clusters, run<Kernel>, &config),
                                   "cudaOccupancyMaxActiveClusters"));
      blocks = clusters * Kernel::cluster;
    } else {
      int per_multiprocessor = 0;
      TY_RETURN_IF_ERROR(to_status(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                       &per_multiprocessor, run<Kernel>, Kernel::threads, shared_bytes),
                                   "cudaOccupancyMaxActiveBlocksPerMultiprocessor"));
      blocks = per_multiprocessor * multiprocessors;
    }
    return {};
  }
};

}  // namespace tokenyard::port::cuda
