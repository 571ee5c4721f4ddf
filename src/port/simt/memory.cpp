#include <sys/mman.h>

#include <new>

#include "port/simt/grid.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {
namespace {

// Poisons for the whole of a block's shared memory, values and marks alike.
constexpr Mark kUnwritten = 0xCD;
constexpr Mark kLeft = 0xDE;  // the block has left the kernel

// Not memset(): ThreadSanitizer would take that for an access of the running GPU thread.
void fill(std::byte* memory, size_t bytes, Mark poison) {
  const uint64_t word = 0x0101010101010101u * poison;
  auto* to = reinterpret_cast<volatile uint64_t*>(memory);
  for (size_t i = 0; i < (bytes + 7) / 8; ++i) to[i] = word;
}

}  // namespace

Grid::~Grid() {
  for (Block& block : blocks_) {
    if (block.shared != nullptr) munmap(block.shared, kSharedBytes);
  }
}

void Grid::make_shared_memory(Block& block) {
  if (block.shared != nullptr) return;
  void* memory =
      mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  block.shared = static_cast<std::byte*>(memory);
}

void Grid::end_shared_memory(Block& block) { fill(block.shared, block.shared_bytes, kLeft); }

// At the first request for a block's shared memory, its own or a neighbour's.
void Grid::begin_shared_memory(Block& block, size_t bytes, const std::type_info& type) {
  block.shared_bytes = bytes;
  block.shared_type = &type;
  fill(block.shared, bytes, kUnwritten);
}

void* Grid::shared_memory(size_t bytes, const std::type_info& type, const Site& site) {
  Block& block = *current_->warp->block;
  if (bytes > kSharedBytes) fail(text("shared() of ", bytes, " bytes; a block has ", kSharedBytes), site);
  if (block.shared_bytes == 0) begin_shared_memory(block, bytes, type);
  if (*block.shared_type != type) {
    fail(text("shared<", type_name(type), ">() after shared<", type_name(*block.shared_type),
              ">(); a block has one"),
         site);
  }
  return block.shared;
}

void* Grid::remote_memory(void* own, int cluster, int rank, const Site& site) {
  expect_cluster(cluster, site);
  expect_in_cluster("remote", site);
  if (rank < 0 || rank >= launch_.cluster) {
    fail(text("remote() of rank ", rank, "; the cluster has 0 to ", launch_.cluster - 1), site);
  }
  const Block& block = *current_->warp->block;
  const auto offset = static_cast<std::byte*>(own) - block.shared;
  if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(block.shared_bytes)) {
    fail("remote() of something that is not in the block's shared memory", site);
  }
  Block& neighbour = block.cluster->blocks[rank];
  if (neighbour.shared_bytes == 0) begin_shared_memory(neighbour, block.shared_bytes, *block.shared_type);
  return neighbour.shared + offset;
}

void Grid::before_shared_read(const Mark& mark, const Site& site) {
  if (mark == kWritten) return;
  fail(mark == kLeft ? "reads the shared memory of a block that has left the kernel"
                     : "reads shared memory that was not written",
       site);
}

void Grid::before_shared_receive(Mark& mark, const Site& site) {
  if (mark == kLeft) fail("sends to a block that has left the kernel", site);
  mark = kWritten;
}

void Grid::before_shared_write(Mark& mark, const Site& site) {
  const Block& block = *current_->warp->block;
  const auto offset = reinterpret_cast<std::byte*>(&mark) - block.shared;
  if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(block.shared_bytes)) {
    fail("writes the shared memory of another block; a neighbour's is to be read only", site);
  }
  mark = kWritten;
}

}  // namespace tokenyard::port::simt
