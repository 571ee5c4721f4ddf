// The SIMT executor: runs a kernel on the CPU with a fiber per GPU thread, to find mistakes in it.
//
// All fibers of a launch share one OS thread. A thread runs until it waits (or, now and then, until it
// touches memory that others can see); which one goes on is drawn from a seed, see options.hpp. Errors that
// a GPU would answer with a hang or with garbage end the launch with a Status that names the kernel, the
// block, the thread, the source line and the seed.
//
// This is the executor as port/host.hpp sees it. Everything behind it is compiled without sanitizers
// (simt/CMakeLists.txt): ThreadSanitizer takes each GPU thread for a thread of its own, would see the
// executor's bookkeeping as races between them, and its state as an order that the kernel does not have.
// So the operations below hide the bookkeeping behind calls, and the kernel's own accesses stay outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <typeinfo>

#include "runtime/status.hpp"

namespace tokenyard::port::simt {

// The device that the executor stands for.
inline constexpr int kMultiprocessors = 8;
inline constexpr int kThreadsPerMultiprocessor = 2048;
inline constexpr int kMaxThreads = 1024;  // in a block
inline constexpr int kMaxCluster = 8;
inline constexpr size_t kSharedBytes = 512 << 10;  // of a block; more than a GPU's, to hold array's marks

// Where a kernel calls an operation: the default argument of everything that can fail.
using Site = std::source_location;

struct Launch {
  const std::type_info* type;
  const void* kernel;
  void (*run_thread)(const void* kernel, int block, int thread, int blocks);
  int blocks;
  int threads;  // in a block
  int warp_size;
  int cluster;
  bool cooperative;
  bool linked;
};

Status launch(const Launch& launch);

// ---- for the running GPU thread ----

// Ends the launch with an error.
[[noreturn]] void fail(const std::string& what, const Site& site);

// Operations of a warp. The value is what this lane brings; the result is what it gets.
enum class Collective { kSyncWarp, kShfl, kShflUp, kShflXor, kBallot, kAny, kMatch, kReduceAdd, kReduceMax };
uint64_t collective(Collective kind, uint64_t value, int argument, const Site& site);

void sync_block(const Site& site);
void sync_warps(int first, int count, const Site& site);
void sync_cluster(int size, const Site& site);
void arrive_cluster(int size, const Site& site);
void wait_cluster(const Site& site);
void sync_grid(const Site& site);

// Waits until others have run.
void pause(const Site& site);

// The block's shared memory. `type` tells one struct from another.
void* shared_memory(size_t bytes, const std::type_info& type, const Site& site);
// The same place in the shared memory of a block of this cluster.
void* remote_memory(void* own, int cluster, int rank, const Site& site);

// In a linked launch every thread has to call it, before it touches global memory.
void await_previous();
void expect_awaited(const Site& site);

// Before an access to global memory, so that others may run first. A launch in which nothing changes any
// more is stuck: that is why stores and additions say whether they change anything.
void before_load(const Site& site);
void before_store(const void* cell, uint64_t bits, size_t bytes, const Site& site);
void before_add(bool changes, const Site& site);

// The same for shared memory, where every element has a mark that says whether it was written; shared.hpp.
using Mark = unsigned char;
void before_shared_read(const Mark& mark, const Site& site);
void before_shared_write(Mark& mark, const void* cell, uint64_t bits, size_t bytes, const Site& site);
void before_shared_add(const Mark& mark, bool changes, const Site& site);
void before_shared_receive(Mark& mark, const Site& site);  // from a neighbour

}  // namespace tokenyard::port::simt
