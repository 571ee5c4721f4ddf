#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "port/simt/grid.hpp"
#include "port/simt/sanitizer.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {

const char* name(Collective kind) {
  constexpr const char* names[] = {"sync_warp", "shfl",  "shfl_up",    "shfl_xor",  "ballot",
                                   "any",       "match", "reduce_add", "reduce_max"};
  return names[static_cast<int>(kind)];
}

const char* name(Barrier kind) {
  constexpr const char* names[] = {"sync_block", "sync_cluster", "wait_cluster", "sync_grid"};
  return names[static_cast<int>(kind)];
}

std::string place(const Site& site) { return text(site.file_name(), ":", site.line()); }

bool same(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

std::string type_name(const std::type_info& type) {
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr);
  std::string name = demangled != nullptr ? demangled : type.name();
  std::free(demangled);
  return name;
}

void Grid::fail(const std::string& what, const Site& site) {
  record(what, *current_, &site);
  throw Abort();
}

void Grid::record(const std::string& what, const Lane& lane, const Site* site) {
  record(text("block ", lane.warp->block->index, ", thread ", lane.thread, " (lane ", lane.index, ")",
              site != nullptr ? ", " + place(*site) : "", ": ", what));
}

void Grid::record(const std::string& what) {
  failed_ = true;
  error_ = text("kernel ", type_name(*launch_.type), ": ", what, "; seed ", seed_);
  release(&error_);
}

// Where everybody waits: "; 63 threads in sync_block() at kernel.hpp:88 (first: block 0, thread 1)".
std::string Grid::waiting_lanes() const {
  struct Group {
    int count = 0;
    int block = 0, thread = 0;  // the first
  };
  std::map<std::tuple<std::string, std::string>, Group> groups;
  for (int i = 0; i < blocks_in_flight_ * warps(); ++i) {
    for (int l = 0; l < launch_.warp_size; ++l) {
      const Lane& lane = warps_[i].lanes[l];
      if (!lane.inside || lane.waits_in == nullptr) continue;
      Group& group = groups[{lane.waits_in, place(lane.site)}];
      if (group.count++ == 0) {
        group.block = warps_[i].block->index;
        group.thread = lane.thread;
      }
    }
  }
  std::string out;
  for (const auto& [key, group] : groups) {
    const auto& [operation, where] = key;
    out += text("; ", group.count, " threads in ", operation, "() at ", where, " (first: block ", group.block,
                ", thread ", group.thread, ")");
  }
  if (!unstarted_.empty()) {
    out += text("; ", unstarted_.size() * static_cast<size_t>(launch_.cluster),
                " blocks have not started: they need not be resident together");
  }
  return out;
}

}  // namespace tokenyard::port::simt
