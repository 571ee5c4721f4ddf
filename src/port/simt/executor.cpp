#include "port/simt/executor.hpp"

#include "port/simt/grid.hpp"

namespace tokenyard::port::simt {
namespace {

// Not memcmp(): ThreadSanitizer would take that for an access of the running GPU thread.
uint64_t load_bits(const void* cell, size_t bytes) {
  switch (bytes) {
    case 1:
      return *static_cast<const uint8_t*>(cell);
    case 2:
      return *static_cast<const uint16_t*>(cell);
    case 4:
      return *static_cast<const uint32_t*>(cell);
    default:
      return *static_cast<const uint64_t*>(cell);
  }
}

}  // namespace

Status launch(const Launch& launch) {
  thread_local Grid grid;
  return grid.run(launch);
}

void fail(const std::string& what, const Site& site) { running->fail(what, site); }

uint64_t collective(Collective kind, uint64_t value, int argument, const Site& site) {
  return running->collective(kind, value, argument, site);
}

void sync_block(const Site& site) { running->barrier(Barrier::kBlock, site); }

void sync_warps(int first, int count, const Site& site) { running->sync_warps(first, count, site); }

void sync_cluster(int size, const Site& site) { running->sync_cluster(size, site); }

void arrive_cluster(int size, const Site& site) { running->arrive_cluster(size, site); }

void wait_cluster(const Site& site) { running->wait_cluster(site); }

void sync_grid(const Site& site) { running->barrier(Barrier::kGrid, site); }

void pause(const Site& site) { running->pause(site); }

void* shared_memory(size_t bytes, const std::type_info& type, const Site& site) {
  return running->shared_memory(bytes, type, site);
}

void* remote_memory(void* own, int cluster, int rank, const Site& site) {
  return running->remote_memory(own, cluster, rank, site);
}

void await_previous() { running->await_previous(); }

void expect_awaited(const Site& site) { running->expect_awaited(site); }

void before_load(const Site& site) {
  expect_awaited(site);
  running->step(false);
}

void before_store(const void* cell, uint64_t bits, size_t bytes, const Site& site) {
  expect_awaited(site);
  running->step(load_bits(cell, bytes) != bits);
}

void before_add(bool changes, const Site& site) {
  expect_awaited(site);
  running->step(changes);
}

void before_shared_read(const Mark& mark, const Site& site) {
  running->step(false);
  running->before_shared_read(mark, site);
}

void before_shared_write(Mark& mark, const void* cell, uint64_t bits, size_t bytes, const Site& site) {
  running->step(mark != kWritten || load_bits(cell, bytes) != bits);
  running->before_shared_write(mark, site);
}

void before_shared_add(const Mark& mark, bool changes, const Site& site) {
  running->step(changes);
  running->before_shared_read(mark, site);
}

void before_shared_receive(Mark& mark, const Site& site) {
  running->step(true);
  running->before_shared_receive(mark, site);
}

}  // namespace tokenyard::port::simt
