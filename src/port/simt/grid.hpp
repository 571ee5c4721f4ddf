// The state of a running launch: lanes in warps in blocks in clusters, and who waits for whom.
//
//   schedule.cpp     starts clusters, chooses who runs next, ends the launch
//   collectives.cpp  what the lanes of a warp do together
//   barriers.cpp     of a block, a cluster, the grid
//   memory.cpp       shared memory and its marks
//   report.cpp       errors in words
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "port/simt/executor.hpp"
#include "port/simt/fiber.hpp"
#include "port/simt/options.hpp"
#include "port/simt/random.hpp"
#include "runtime/status.hpp"

namespace tokenyard::port::simt {

// Orders the memory of threads that meet again and again, for ThreadSanitizer. Two addresses in turn: who
// has yet to leave one meeting must not learn what others did on their way to the next.
class Order {
 public:
  void* now() { return &address_[turn_]; }
  void turn() { turn_ ^= 1; }

 private:
  uint64_t address_[2] = {};
  int turn_ = 0;
};

// What threads wait for together. The third is the cluster's barrier again, cut in two: arrive_cluster, which
// orders no memory, and wait_cluster.
enum class Barrier { kBlock, kCluster, kArrivedCluster, kGrid };

// The threads of a block, a cluster or the grid, as its barrier sees them.
struct Team {
  int members = 0;
  int arrived = 0;
  int left = 0;  // have returned from the kernel
  Order order;
};

// The mark of an element of shared memory that was written; anything else says that it was not.
inline constexpr Mark kWritten = 1;

struct Warp;
struct Block;
struct Cluster;

// One GPU thread.
struct Lane {
  Fiber fiber;
  Warp* warp = nullptr;
  int thread = 0;                  // in the block
  int index = 0;                   // in the warp
  bool inside = false;             // has entered the kernel and not returned
  bool awaited = false;            // the launch before, if this one is linked to it
  const char* waits_in = nullptr;  // the operation, or nullptr if it does not wait
  Site site;                       // of that operation
  uint64_t value = 0;              // what it brings to a collective, then what it gets
  int argument = 0;
  void* arrived_cluster = nullptr;  // between arrive_cluster and wait_cluster: Order::now() of the former

  uint64_t bit() const { return uint64_t{1} << index; }
};

// Lanes with their stacks. A warp, of 32 or of 64, is whole in one.
struct Lanes {
  static constexpr int kCount = 64;
  Stacks stacks{kCount};
  Lane lanes[kCount];
};

struct Warp {
  Block* block = nullptr;
  Lane* lanes = nullptr;
  uint64_t bit = 0;                          // in the block's masks
  uint64_t ready = 0, paused = 0, left = 0;  // masks of lanes
  uint64_t met = 0;                          // lanes that wait in a collective: all in this one
  Collective kind{};
  Site site;
  uint64_t at_barrier = 0;  // lanes that wait in a barrier
  uint64_t at_part = 0;     // lanes that wait in a barrier of some of the block's warps
  Order order;              // of sync_warp
};

struct Block {
  Cluster* cluster = nullptr;
  Warp* warps = nullptr;
  int index = 0;                   // in the grid
  uint64_t ready = 0, paused = 0;  // masks of warps that have such lanes
  int place = -1;                  // in the list of blocks that have ready lanes
  int last_warp = 0;               // that ran
  Team team;
  Team parts[2];    // the first warps and the last, where they have barriers of their own
  int waiting = 0;  // threads that wait in a barrier of any kind but theirs: all in this one
  Barrier kind{};
  Site site;
  std::byte* shared = nullptr;
  size_t shared_bytes = 0;  // in use
  const std::type_info* shared_type = nullptr;
};

struct Cluster {
  Block* blocks = nullptr;
  Team team;
  uint64_t ended = 0, begun = 0;  // order the threads that use these fibers one after the other
};

// Passes through the frames of a kernel whose launch has failed.
struct Abort {};

class Grid {
 public:
  Grid() = default;
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;
  ~Grid();

  Status run(const Launch& launch);

  // For the running lane; see executor.hpp.
  [[noreturn]] void fail(const std::string& what, const Site& site);
  uint64_t collective(Collective kind, uint64_t value, int argument, const Site& site);
  void barrier(Barrier kind, const Site& site);
  void sync_warps(int first, int count, const Site& site);
  void sync_cluster(int size, const Site& site);
  void arrive_cluster(int size, const Site& site);
  void wait_cluster(const Site& site);
  void pause(const Site& site);
  void await_previous() { current_->awaited = true; }
  void expect_awaited(const Site& site) {
    if (!current_->awaited) fail("global memory in a linked launch, before await_previous()", site);
  }
  void* shared_memory(size_t bytes, const std::type_info& type, const Site& site);
  void* remote_memory(void* own, int cluster, int rank, const Site& site);
  void before_shared_read(const Mark& mark, const Site& site);
  void before_shared_write(Mark& mark, const Site& site);
  void before_shared_receive(Mark& mark, const Site& site);

  // Counts an access to memory that others can see; now and then lets them run first.
  void step(bool changes) {
    if (changes) idle_rounds_ = idle_steps_ = 0;
    if (--steps_left_ <= 0) preempt();
  }

 private:
  // schedule.cpp
  Status check() const;
  void prepare();
  void start(Cluster& cluster);
  static void lane_main();
  void leave(Lane& lane);
  void preempt();
  void suspend(const char* operation, const Site& site);
  Fiber& choose();
  void make_ready(Warp& warp, uint64_t lanes);
  void take(Lane& lane);
  bool retry_polls();
  void unwind();

  // collectives.cpp
  void complete(Warp& warp);

  // barriers.cpp
  void expect_cluster(int size, const Site& site);
  void expect_convergence(Barrier kind, const Site& site);
  void expect_in_cluster(const char* operation, const Site& site);
  void* arrive(Barrier kind, const Site& site);
  void wait(Barrier kind, void* order, const Site& site);
  void open(Barrier kind, Block& block);
  void open(Barrier kind, Block* blocks, int count);
  Team& team_of(Barrier kind, Block& block);

  // memory.cpp
  void make_shared_memory(Block& block);
  void begin_shared_memory(Block& block, size_t bytes, const std::type_info& type);
  void end_shared_memory(Block& block);

  // report.cpp
  void record(const std::string& what, const Lane& lane, const Site* site);
  void record(const std::string& what);
  std::string waiting_lanes() const;

  int warps() const { return launch_.threads / launch_.warp_size; }
  uint64_t all_lanes() const { return ~uint64_t{0} >> (64 - launch_.warp_size); }
  bool chance(uint32_t of_256) { return random_.below(256) < of_256; }

  Launch launch_{};
  uint64_t seed_ = 0;
  Random random_{0};
  uint32_t stay_with_block_ = 0, stay_with_warp_ = 0;  // chances of 256
  uint32_t steps_between_preemptions_ = 1;             // on average

  // Places for threads. The vectors only grow: stacks and shared memory are kept for the next launch.
  std::vector<std::unique_ptr<Lanes>> lanes_;
  std::vector<Warp> warps_;
  std::vector<Block> blocks_;
  std::vector<Cluster> clusters_;
  int blocks_in_flight_ = 0;

  struct ClusterIndex {
    int value;
  };
  std::vector<ClusterIndex> unstarted_;
  std::vector<Block*> ready_;  // blocks that have ready lanes
  Team team_;                  // the whole grid
  int live_ = 0;               // threads in flight that have not left
  Fiber main_;                 // the OS thread's own
  Lane* current_ = nullptr;
  Block* last_block_ = nullptr;  // that ran, or nullptr after a lane gave way
  int64_t steps_left_ = 0;       // to the next preemption
  int64_t idle_rounds_ = 0;      // since memory changed: times that all polls were tried in vain
  int64_t idle_steps_ = 0;       // likewise: accesses
  bool failed_ = false;
  std::string error_;
};

// The grid that runs on this OS thread.
extern constinit thread_local Grid* running;

const char* name(Collective kind);
const char* name(Barrier kind);
std::string place(const Site& site);  // "file:line"
std::string type_name(const std::type_info& type);
bool same(const Site& a, const Site& b);

}  // namespace tokenyard::port::simt
