#include <bit>

#include "port/simt/grid.hpp"
#include "port/simt/sanitizer.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {

void Grid::barrier(Barrier kind, const Site& site) {
  step(false);
  if (kind == Barrier::kGrid && !launch_.cooperative) {
    fail("sync_grid() in a kernel that is not cooperative: nothing makes all blocks resident", site);
  }
  expect_convergence(kind, site);
  wait(kind, arrive(kind, site), site);
}

void Grid::sync_cluster(int size, const Site& site) {
  expect_cluster(size, site);
  expect_in_cluster("sync_cluster", site);
  barrier(Barrier::kCluster, site);
}

void Grid::arrive_cluster(int size, const Site& site) {
  step(false);
  expect_cluster(size, site);
  expect_in_cluster("arrive_cluster", site);
  current_->arrived_cluster = arrive(Barrier::kArrivedCluster, site);
}

void Grid::wait_cluster(const Site& site) {
  Lane& lane = *current_;
  if (lane.arrived_cluster == nullptr) fail("wait_cluster() without an arrive_cluster()", site);
  // Once everybody has left, others may be anywhere beyond their own wait.
  if (lane.arrived_cluster == lane.warp->block->cluster->team.order.now()) {
    expect_convergence(Barrier::kArrivedCluster, site);
  }
  wait(Barrier::kArrivedCluster, lane.arrived_cluster, site);
  lane.arrived_cluster = nullptr;
}

void Grid::expect_convergence(Barrier kind, const Site& site) {
  const Warp& warp = *current_->warp;
  const Block& block = *warp.block;
  if (warp.met != 0) {
    fail(text("divergent: ", name(kind), "(), while lane ", std::countr_zero(warp.met),
              " of the warp waits in ", name(warp.kind), "() at ", place(warp.site)),
         site);
  }
  if (block.waiting != 0 && (kind != block.kind || !same(site, block.site))) {
    fail(text("divergent: ", name(kind), "(), while ", block.waiting, " threads of the block wait in ",
              name(block.kind), "() at ", place(block.site), "; all threads must wait at the same place"),
         site);
  }
}

// Counts the lane in, and opens the barrier if it is the last. Returns what orders it with the others.
void* Grid::arrive(Barrier kind, const Site& site) {
  Block& block = *current_->warp->block;
  Team& team = team_of(kind, block);
  if (team.left != 0) {
    fail(text(name(kind), "() waits for ", team.members, " threads, of which ", team.left,
              " have left the kernel"),
         site);
  }
  void* order = team.order.now();
  if (kind != Barrier::kArrivedCluster) release(order);
  if (++team.arrived == team.members) {
    team.arrived = 0;
    team.order.turn();
    open(kind, block);
  }
  return order;
}

// Waits until all have arrived. Who comes when they have is not sure to go on first either.
void Grid::wait(Barrier kind, void* order, const Site& site) {
  Lane& lane = *current_;
  Warp& warp = *lane.warp;
  Block& block = *warp.block;
  if (order == team_of(kind, block).order.now()) {
    block.kind = kind;
    block.site = site;
    ++block.waiting;
    warp.at_barrier |= lane.bit();
    suspend(name(kind), site);
  } else {
    make_ready(warp, lane.bit());
    suspend(nullptr, site);
  }
  acquire(order);
}

void Grid::open(Barrier kind, Block& block) {
  switch (kind) {
    case Barrier::kBlock:
      return open(kind, &block, 1);
    case Barrier::kCluster:
    case Barrier::kArrivedCluster:
      return open(kind, block.cluster->blocks, launch_.cluster);
    case Barrier::kGrid:
      return open(kind, blocks_.data(), blocks_in_flight_);
  }
}

void Grid::open(Barrier kind, Block* blocks, int count) {
  for (Block* block = blocks; block != blocks + count; ++block) {
    if (block->waiting == 0 || block->kind != kind) continue;
    block->waiting = 0;
    for (int i = 0; i < warps(); ++i) {
      Warp& warp = block->warps[i];
      if (warp.at_barrier != 0) make_ready(warp, warp.at_barrier);
      warp.at_barrier = 0;
    }
  }
}

Team& Grid::team_of(Barrier kind, Block& block) {
  switch (kind) {
    case Barrier::kBlock:
      return block.team;
    case Barrier::kCluster:
    case Barrier::kArrivedCluster:
      return block.cluster->team;
    case Barrier::kGrid:
      break;
  }
  return team_;
}

void Grid::expect_cluster(int size, const Site& site) {
  if (size == launch_.cluster) return;
  fail(text("an operation on clusters of ", size, " blocks; the kernel has clusters of ", launch_.cluster),
       site);
}

void Grid::expect_in_cluster(const char* operation, const Site& site) {
  if (current_->arrived_cluster != nullptr) fail(text(operation, "() after arrive_cluster()"), site);
}

}  // namespace tokenyard::port::simt
