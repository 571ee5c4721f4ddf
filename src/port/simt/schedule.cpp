#include <algorithm>

#include "port/simt/grid.hpp"
#include "port/simt/sanitizer.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {
namespace {

constexpr int kMaxTsanFibers = 4096;        // of a launch; its older runtime dies of 8128 in a process
constexpr int kMaxIdleRounds = 1000;        // polls that give up do so much sooner
constexpr int64_t kMaxIdleSteps = 1 << 24;  // reads of a launch between two writes

}  // namespace

constinit thread_local Grid* running = nullptr;

Status Grid::run(const Launch& launch) {
  const Options options = options_of_next_launch();
  launch_ = launch;
  seed_ = options.seed;
  const int wanted =
      (std::max(options.blocks_in_flight, 1) + launch.cluster - 1) / launch.cluster * launch.cluster;
  blocks_in_flight_ = launch.cooperative ? launch.blocks : std::min(launch.blocks, wanted);
  if (Status status = check(); !status.ok()) return status;

  running = this;
  prepare();
  const int clusters = blocks_in_flight_ / launch_.cluster;
  for (int i = 0; i < clusters; ++i) start(clusters_[i]);
  main_.switch_to(choose());
  if (failed_) {
    acquire(&error_);
    unwind();
  }
  for (int i = 0; i < clusters; ++i) acquire(&clusters_[i].ended);
  running = nullptr;
  return failed_ ? Status(TY_DEVICE_ERROR, error_) : Status();
}

Status Grid::check() const {
  const auto refuse = [&](const auto&... what) {
    return Status(TY_DEVICE_ERROR, text("kernel ", type_name(*launch_.type), ": ", what...));
  };
  if (launch_.threads < 1 || launch_.threads > kMaxThreads || launch_.threads % launch_.warp_size != 0) {
    return refuse("blocks of ", launch_.threads, " threads; expected whole warps of ", launch_.warp_size,
                  ", at most ", kMaxThreads, " threads");
  }
  if (launch_.cluster < 1 || launch_.cluster > kMaxCluster) {
    return refuse("clusters of ", launch_.cluster, " blocks; expected 1 to ", kMaxCluster);
  }
  if (launch_.blocks < 1 || launch_.blocks % launch_.cluster != 0) {
    return refuse("a grid of ", launch_.blocks, " blocks; expected whole clusters of ", launch_.cluster,
                  ", at least one");
  }
  const int resident = kThreadsPerMultiprocessor / launch_.threads * kMultiprocessors;
  if (launch_.cooperative && launch_.blocks > resident) {
    return refuse("a cooperative grid of ", launch_.blocks, " blocks of ", launch_.threads,
                  " threads; at most ", resident, " can be resident");
  }
  if (has_tsan() && blocks_in_flight_ * launch_.threads > kMaxTsanFibers) {
    return refuse(blocks_in_flight_ * launch_.threads, " threads in flight; ThreadSanitizer can follow ",
                  kMaxTsanFibers, ": launch fewer, or set simt::Options::blocks_in_flight");
  }
  return Status();
}

// Makes room for the launch, with nothing in it.
void Grid::prepare() {
  const int clusters = blocks_in_flight_ / launch_.cluster;
  const int warps_in_flight = blocks_in_flight_ * warps();
  const int chunks = (warps_in_flight * launch_.warp_size + Lanes::kCount - 1) / Lanes::kCount;
  while (static_cast<int>(lanes_.size()) < chunks) {
    Lanes& added = *lanes_.emplace_back(std::make_unique<Lanes>());
    for (int i = 0; i < Lanes::kCount; ++i) {
      added.lanes[i].fiber.create(added.stacks.bottom(i), added.stacks.size(), &Grid::lane_main);
    }
  }
  if (static_cast<int>(warps_.size()) < warps_in_flight) warps_.resize(warps_in_flight);
  if (static_cast<int>(blocks_.size()) < blocks_in_flight_) blocks_.resize(blocks_in_flight_);
  if (static_cast<int>(clusters_.size()) < clusters) clusters_.resize(clusters);

  for (int i = 0; i < warps_in_flight; ++i) {
    Warp& warp = warps_[i];
    const int first = i * launch_.warp_size;
    warp.block = &blocks_[i / warps()];
    warp.lanes = &lanes_[first / Lanes::kCount]->lanes[first % Lanes::kCount];
    warp.bit = uint64_t{1} << i % warps();
    for (int lane = 0; lane < launch_.warp_size; ++lane) {
      warp.lanes[lane].warp = &warp;
      warp.lanes[lane].thread = i % warps() * launch_.warp_size + lane;
      warp.lanes[lane].index = lane;
    }
  }
  for (int i = 0; i < blocks_in_flight_; ++i) {
    Block& block = blocks_[i];
    block.cluster = &clusters_[i / launch_.cluster];
    block.warps = &warps_[i * warps()];
    block.ready = 0;
    block.place = -1;
    block.team.members = launch_.threads;
    make_shared_memory(block);
  }
  for (int i = 0; i < clusters; ++i) {
    clusters_[i].blocks = &blocks_[i * launch_.cluster];
    clusters_[i].team.members = launch_.cluster * launch_.threads;
  }
  unstarted_.resize(launch_.blocks / launch_.cluster);
  for (size_t i = 0; i < unstarted_.size(); ++i) unstarted_[i].value = static_cast<int>(i);
  ready_.clear();
  team_ = Team();
  team_.members = launch_.blocks * launch_.threads;
  live_ = 0;
  failed_ = false;
  main_.adopt();

  // How this launch runs, from lock step to one block after the other: most mistakes show in some kinds of
  // order only, and a choice among all lanes each time would always give the same even progress.
  random_ = Random(seed_);
  stay_with_block_ = random_.one_of({0u, 128u, 250u, 256u});
  stay_with_warp_ = random_.one_of({0u, 128u, 250u, 256u});
  steps_between_preemptions_ = random_.one_of({8u, 64u, 1024u});
  steps_left_ = 1 + random_.below(2 * steps_between_preemptions_);
  idle_rounds_ = idle_steps_ = 0;
  last_block_ = nullptr;
}

// Starts one of the clusters that have not run yet, drawn at random: a GPU promises no order either.
void Grid::start(Cluster& cluster) {
  std::swap(unstarted_[random_.below(static_cast<uint32_t>(unstarted_.size()))], unstarted_.back());
  const int index = unstarted_.back().value;
  unstarted_.pop_back();
  acquire(&cluster.ended);
  release(&cluster.begun);

  cluster.team.arrived = cluster.team.left = 0;
  for (int rank = 0; rank < launch_.cluster; ++rank) {
    Block& block = cluster.blocks[rank];
    block.index = index * launch_.cluster + rank;
    block.paused = 0;
    block.team.arrived = block.team.left = block.waiting = 0;
    block.parts[0].arrived = block.parts[1].arrived = 0;
    block.shared_bytes = 0;
    for (int i = 0; i < warps(); ++i) {
      Warp& warp = block.warps[i];
      warp.ready = warp.paused = warp.left = warp.met = warp.at_barrier = warp.at_part = 0;
      make_ready(warp, all_lanes());
    }
  }
  live_ += cluster.team.members;
  idle_rounds_ = idle_steps_ = 0;
}

// What a fiber does: one GPU thread after another.
void Grid::lane_main() {
  Grid& grid = *running;
  Lane& lane = *grid.current_;
  for (;;) {
    const Block& block = *lane.warp->block;
    Cluster& cluster = *block.cluster;
    lane.inside = true;
    lane.awaited = !grid.launch_.linked;
    lane.arrived_cluster = nullptr;
    acquire(&cluster.begun);
    try {
      grid.launch_.run_thread(grid.launch_.kernel, block.index, lane.thread, grid.launch_.blocks);
    } catch (const Abort&) {
    }
    release(&cluster.ended);
    lane.inside = false;
    if (!grid.failed_) grid.leave(lane);
    lane.fiber.switch_to(grid.choose());
  }
}

void Grid::leave(Lane& lane) {
  Warp& warp = *lane.warp;
  Block& block = *warp.block;
  Cluster& cluster = *block.cluster;
  if (!lane.fiber.stack_suffices()) return record("the thread's stack overflowed", lane, nullptr);
  if (!lane.awaited)
    return record("left the kernel of a linked launch without await_previous()", lane, nullptr);
  if (warp.met != 0) {
    return record(text("left the kernel while other lanes of its warp wait for it in ", name(warp.kind),
                       "() at ", place(warp.site)),
                  lane, nullptr);
  }
  if (lane.arrived_cluster != nullptr) {
    return record("left the kernel after arrive_cluster() without wait_cluster()", lane, nullptr);
  }
  if (block.team.arrived + cluster.team.arrived + team_.arrived > 0) {
    return record("left the kernel while others wait for it in a barrier" + waiting_lanes(), lane, nullptr);
  }
  warp.left |= lane.bit();
  ++team_.left;
  ++cluster.team.left;
  --live_;
  idle_rounds_ = idle_steps_ = 0;
  if (++block.team.left == block.team.members && launch_.cluster > 1) end_shared_memory(block);
  if (cluster.team.left == cluster.team.members && !unstarted_.empty()) start(cluster);
}

void Grid::pause(const Site& site) {
  Lane& lane = *current_;
  Warp& warp = *lane.warp;
  if (chance(32)) {
    make_ready(warp, lane.bit());
  } else {
    warp.paused |= lane.bit();
    warp.block->paused |= warp.bit;
  }
  last_block_ = nullptr;
  suspend("pause", site);
}

void Grid::preempt() {
  steps_left_ = 1 + random_.below(2 * steps_between_preemptions_);
  idle_steps_ += steps_left_;
  Lane& lane = *current_;
  if (idle_steps_ > kMaxIdleSteps) {
    record("deadlock: a loop reads memory that nobody changes any more" + waiting_lanes(), lane, nullptr);
    throw Abort();
  }
  make_ready(*lane.warp, lane.bit());
  last_block_ = nullptr;
  suspend(nullptr, Site());
}

// Lets others run until the current lane, which has been noted as ready or as waiting, is chosen again.
void Grid::suspend(const char* operation, const Site& site) {
  Lane& self = *current_;
  self.waits_in = operation;
  self.site = site;
  self.fiber.switch_to(choose());
  self.waits_in = nullptr;
  if (failed_) throw Abort();
}

// Who runs next: a ready lane, or the launch itself if it is over.
Fiber& Grid::choose() {
  if (failed_ || live_ == 0) return main_;
  if (ready_.empty() && !retry_polls()) {
    record("deadlock" + waiting_lanes());
    return main_;
  }
  Block* block = last_block_;
  const bool stay = block != nullptr && block->ready != 0 && chance(stay_with_block_);
  if (!stay) block = ready_[random_.below(static_cast<uint32_t>(ready_.size()))];
  if (!(stay && (block->ready >> block->last_warp & 1) != 0 && chance(stay_with_warp_))) {
    block->last_warp = random_.bit_of(block->ready, warps());
  }
  last_block_ = block;
  Warp& warp = block->warps[block->last_warp];
  current_ = &warp.lanes[random_.bit_of(warp.ready, launch_.warp_size)];
  take(*current_);
  return current_->fiber;
}

void Grid::make_ready(Warp& warp, uint64_t lanes) {
  Block& block = *warp.block;
  warp.ready |= lanes;
  block.ready |= warp.bit;
  if (block.place < 0) {
    block.place = static_cast<int>(ready_.size());
    ready_.push_back(&block);
  }
}

void Grid::take(Lane& lane) {
  Warp& warp = *lane.warp;
  Block& block = *warp.block;
  warp.ready &= ~lane.bit();
  if (warp.ready != 0) return;
  block.ready &= ~warp.bit;
  if (block.ready != 0) return;
  ready_[block.place] = ready_.back();
  ready_[block.place]->place = block.place;
  ready_.pop_back();
  block.place = -1;
}

// Everybody waits or polls: lets those that poll look again, unless they have done so often in vain.
bool Grid::retry_polls() {
  if (++idle_rounds_ > kMaxIdleRounds) return false;
  for (int i = 0; i < blocks_in_flight_; ++i) {
    Block& block = blocks_[i];
    if (block.paused == 0) continue;
    block.paused = 0;
    for (int w = 0; w < warps(); ++w) {
      Warp& warp = block.warps[w];
      if (warp.paused != 0) make_ready(warp, warp.paused);
      warp.paused = 0;
    }
  }
  return !ready_.empty();
}

// Lets every thread leave the kernel, so that the fibers can serve the next launch.
void Grid::unwind() {
  for (int i = 0; i < blocks_in_flight_ * warps(); ++i) {
    for (int lane = 0; lane < launch_.warp_size; ++lane) {
      current_ = &warps_[i].lanes[lane];
      if (current_->inside) main_.switch_to(current_->fiber);
    }
  }
}

}  // namespace tokenyard::port::simt
