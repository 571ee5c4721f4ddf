// Tokenyard for C++20, over the C ABI of tokenyard.h: errors are exceptions, handles clean up after
// themselves, and the type of the ids, the capacity and the sizes of buffers follow from the arguments.
//
//   tokenyard::AlignArgs args(ids, num_tokens, top_k, num_experts, block_size);   // device pointers
//   args.sorted_pair_ids = allocate(args.capacity);
//   args.block_expert = allocate(args.num_blocks());
//   args.num_padded = allocate(1);
//   size_t bytes = tokenyard::align_workspace_size(device, args);
//   tokenyard::Workspace workspace(device, allocate(bytes), bytes, stream);
//   tokenyard::align(device, args, workspace, stream);
//
//   auto order = tokenyard::align(host_ids, top_k, num_experts, block_size);      // host memory, on the CPU
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tokenyard/tokenyard.h"

namespace tokenyard {
// The C++ layer is compiled into its user: its version keeps two of them apart in one program.
inline namespace v0 {

class Error : public std::runtime_error {
 public:
  Error(ty_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ty_status status() const { return status_; }

 private:
  ty_status status_;
};

// Throws what the C ABI reports.
inline void check(ty_status status) {
  if (status != TY_OK) throw Error(status, ty_last_error());
}

struct Device : ty_device {
  Device(ty_device device) : ty_device(device) {}
  Device(ty_backend backend, int32_t ordinal = 0) : ty_device{backend, ordinal} {}

  static Device best() { return ty_best_device(); }
  static int32_t count(ty_backend backend) { return ty_device_count(backend); }

  std::string description() const {
    char line[256];
    check(ty_device_describe(*this, line, sizeof line));
    return line;
  }
};

// Device memory that was prepared for an operation; empty where an operation needs none. The memory stays the
// caller's: see ty_workspace_create().
class Workspace {
 public:
  Workspace() = default;
  Workspace(Device device, void* memory, size_t bytes, void* stream) {
    if (bytes == 0) return;
    ty_workspace* handle = nullptr;
    check(ty_workspace_create(device, memory, bytes, stream, &handle));
    handle_.reset(handle);
  }
  ty_workspace* get() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(ty_workspace* handle) const { ty_workspace_destroy(handle); }
  };
  std::unique_ptr<ty_workspace, Destroy> handle_;
};

inline int64_t align_capacity(int64_t num_pairs, int32_t experts, int32_t block_size) {
  const int64_t slots = ty_align_capacity(num_pairs, experts, block_size);
  if (slots < 0) {
    throw Error(
        TY_INVALID_ARGUMENT,
        "align: " + std::to_string(num_pairs) + " pairs of " + std::to_string(experts) +
            " experts in blocks of " + std::to_string(block_size) +
            ", expected at least 0, 1 to 4096 and 1, and positions that fit in int32: split the batch");
  }
  return slots;
}

// The arguments of align. The outputs are plain fields, see ty_align_args: three must be set, the rest may
// be.
struct AlignArgs : ty_align_args {
  // topk_ids: [num_tokens, top_k], contiguous unless row_stride is set.
  template <class Id>
  AlignArgs(const Id* topk_ids, int64_t num_tokens, int32_t top_k, int32_t num_experts, int32_t block_size)
      : ty_align_args TY_ALIGN_ARGS_INIT {
    static_assert(std::is_same_v<Id, int32_t> || std::is_same_v<Id, int64_t>, "ids are int32_t or int64_t");
    this->ids_dtype = std::is_same_v<Id, int64_t> ? TY_INT64 : TY_INT32;
    this->topk_ids = topk_ids;
    this->num_tokens = num_tokens;
    this->top_k = top_k;
    this->num_experts = num_experts;
    this->block_size = block_size;
    this->capacity = align_capacity(num_pairs(), num_experts, block_size);
  }

  // Keeps the experts that map[global id] gives a local id; the others' pairs are dropped.
  void set_expert_map(const int32_t* map, int32_t local_experts) {
    expert_map = map;
    num_local_experts = local_experts;
    capacity = align_capacity(num_pairs(), local_experts, block_size);
  }

  // Clamped to just outside of what align accepts, so that the product cannot overflow.
  int64_t num_pairs() const { return std::clamp<int64_t>(num_tokens, -1, int64_t{1} << 31) * top_k; }
  int32_t experts() const { return expert_map == nullptr ? num_experts : num_local_experts; }
  int64_t num_blocks() const { return (capacity + block_size - 1) / block_size; }
};

inline size_t align_workspace_size(Device device, const AlignArgs& args) {
  size_t bytes = 0;
  check(ty_align_workspace_size(device, &args, &bytes));
  return bytes;
}

inline void align(Device device, const AlignArgs& args, const Workspace& workspace, void* stream) {
  check(ty_align(device, &args, workspace.get(), stream));
}

// In memory of the call's own: see ty_align_once().
inline size_t align_once_size(Device device, const AlignArgs& args) {
  size_t bytes = 0;
  check(ty_align_once_size(device, &args, &bytes));
  return bytes;
}

inline void align_once(Device device, const AlignArgs& args, void* memory, size_t bytes, void* stream) {
  check(ty_align_once(device, &args, memory, bytes, stream));
}

inline std::string align_explain(Device device, const AlignArgs& args) {
  char line[1024];
  check(ty_align_explain(device, &args, line, sizeof line));
  return line;
}

// What align says about host memory, cut to what is in use.
struct AlignedOrder {
  std::vector<int32_t> sorted_pair_ids;  // [num_padded]
  std::vector<int32_t> block_expert;     // [num_padded / block_size]
  std::vector<int32_t> block_rows;       // likewise
  std::vector<int32_t> counts;           // [experts]
  std::vector<int32_t> offsets;          // [experts + 1]
  std::vector<int32_t> inverse;          // [num_tokens, top_k]
  int32_t num_dropped = 0;
};

// The experts of this process among all: a map [num_experts] from global to local ids, or -1.
struct ExpertMap {
  std::span<const int32_t> local_ids;
  int32_t num_local_experts = 0;
};

namespace detail {

template <class Id>
AlignedOrder align_on_host(std::span<const Id> topk_ids, int32_t top_k, int32_t num_experts,
                           int32_t block_size, ExpertMap map) {
  const auto pairs = static_cast<int64_t>(topk_ids.size());
  if (top_k < 1 || pairs % top_k != 0) {
    throw Error(TY_INVALID_ARGUMENT, "align: topk_ids has " + std::to_string(pairs) +
                                         " ids, expected a multiple of top_k, which is " +
                                         std::to_string(top_k) + ": pass the whole [num_tokens, top_k]");
  }
  AlignArgs args(topk_ids.data(), pairs / top_k, top_k, num_experts, block_size);
  if (!map.local_ids.empty() || map.num_local_experts != 0) {
    if (static_cast<int64_t>(map.local_ids.size()) != num_experts) {
      throw Error(TY_INVALID_ARGUMENT, "align: expert_map has " + std::to_string(map.local_ids.size()) +
                                           " entries, expected num_experts, which is " +
                                           std::to_string(num_experts) +
                                           ": map each global id, absent ones to -1");
    }
    args.set_expert_map(map.local_ids.data(), map.num_local_experts);
  }
  AlignedOrder order;
  const auto allocate = [](std::vector<int32_t>& to, int64_t size) {
    to.resize(static_cast<size_t>(size));
    return to.data();
  };
  int32_t num_padded = 0;
  args.num_padded = &num_padded;
  args.num_dropped = &order.num_dropped;
  args.sorted_pair_ids = allocate(order.sorted_pair_ids, args.capacity);
  args.block_expert = allocate(order.block_expert, args.num_blocks());
  args.block_rows = allocate(order.block_rows, args.num_blocks());
  args.counts = allocate(order.counts, args.experts());
  args.offsets = allocate(order.offsets, args.experts() + 1);
  args.inverse = allocate(order.inverse, pairs);
  align(TY_CPU, args, Workspace(), nullptr);
  allocate(order.sorted_pair_ids, num_padded);
  allocate(order.block_expert, num_padded / block_size);
  allocate(order.block_rows, num_padded / block_size);
  return order;
}

}  // namespace detail

// Sorts ids in host memory on the CPU: [num_tokens, top_k], contiguous.
inline AlignedOrder align(std::span<const int32_t> topk_ids, int32_t top_k, int32_t num_experts,
                          int32_t block_size, ExpertMap map = {}) {
  return detail::align_on_host(topk_ids, top_k, num_experts, block_size, map);
}
inline AlignedOrder align(std::span<const int64_t> topk_ids, int32_t top_k, int32_t num_experts,
                          int32_t block_size, ExpertMap map = {}) {
  return detail::align_on_host(topk_ids, top_k, num_experts, block_size, map);
}

}  // namespace v0
}  // namespace tokenyard
