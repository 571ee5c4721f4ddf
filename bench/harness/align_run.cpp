#include "harness/align_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "harness/as_status.hpp"
#include "harness/guarded_buffer.hpp"
#include "harness/synchronize.hpp"

namespace tokenyard::harness {

ty_align_args align_args(const AlignShape& shape, ty_align_path path) {
  static const int32_t some_map = 0;  // says that there is a map; nobody reads it
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.ids_dtype = shape.int64_ids ? TY_INT64 : TY_INT32;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.top_k = shape.top_k;
  args.num_experts = shape.experts;
  args.first_id = shape.first_id;
  args.block_size = shape.block;
  args.num_local_experts = shape.local_experts;
  args.expert_map = shape.local_experts > 0 ? &some_map : nullptr;
  const int32_t experts = shape.local_experts > 0 ? shape.local_experts : shape.experts;
  const int64_t pairs = shape.tokens * shape.top_k;
  args.capacity = std::max(ty_align_capacity(pairs, experts, shape.block) + shape.extra_capacity,
                           ty_align_min_capacity(pairs, experts, shape.block));
  args.path = path;
  return args;
}

struct AlignRun::State {
  ty_device device{};
  Runtime* runtime = nullptr;
  AlignShape shape;
  AlignOptions options;
  ty_align_args args{};
  ty_workspace* workspace = nullptr;

  GuardedBuffer ids, expert_map;
  std::vector<unsigned char> ids_image;  // what must still be there after a launch
  std::vector<int32_t> map_image;
  GuardedBuffer sorted_pair_ids, block_expert, num_padded, counts, offsets, inverse, block_rows, num_dropped;
  GuardedBuffer workspace_memory;

  ~State() { ty_workspace_destroy(workspace); }

  int64_t row_stride() const { return shape.row_stride == 0 ? shape.top_k : shape.row_stride; }

  Status allocate(const char* name, int64_t elements, size_t element_bytes, GuardedBuffer& buffer) {
    return GuardedBuffer::create(*runtime, name, static_cast<size_t>(elements) * element_bytes,
                                 static_cast<size_t>(options.misalignment) * element_bytes, buffer,
                                 options.stream);
  }

  Status allocate_output(const char* name, int64_t elements, GuardedBuffer& buffer, int32_t*& argument) {
    TY_RETURN_IF_ERROR(allocate(name, elements, sizeof(int32_t), buffer));
    argument = static_cast<int32_t*>(buffer.data());
    return {};
  }

  Status allocate_inputs() {
    const size_t id_bytes = shape.int64_ids ? sizeof(int64_t) : sizeof(int32_t);
    // The last row ends with its last id, not with a stride.
    const int64_t elements = shape.tokens == 0 ? 0 : (shape.tokens - 1) * row_stride() + shape.top_k;
    TY_RETURN_IF_ERROR(allocate("topk_ids", elements, id_bytes, ids));
    args.topk_ids = ids.data();
    if (map_image.empty()) return {};
    TY_RETURN_IF_ERROR(allocate("expert_map", shape.experts, sizeof(int32_t), expert_map));
    args.expert_map = static_cast<const int32_t*>(expert_map.data());
    return expert_map.write(map_image.data());
  }

  Status allocate_outputs(const AlignProblem& problem) {
    const int64_t blocks = (problem.capacity + shape.block - 1) / shape.block;
    const int64_t experts = problem.num_local_experts();
    TY_RETURN_IF_ERROR(
        allocate_output("sorted_pair_ids", problem.capacity, sorted_pair_ids, args.sorted_pair_ids));
    TY_RETURN_IF_ERROR(allocate_output("block_expert", blocks, block_expert, args.block_expert));
    TY_RETURN_IF_ERROR(allocate_output("num_padded", 1, num_padded, args.num_padded));
    if (!options.optional_outputs) return {};
    TY_RETURN_IF_ERROR(allocate_output("counts", experts, counts, args.counts));
    TY_RETURN_IF_ERROR(allocate_output("offsets", experts + 1, offsets, args.offsets));
    TY_RETURN_IF_ERROR(allocate_output("inverse", problem.num_pairs(), inverse, args.inverse));
    TY_RETURN_IF_ERROR(allocate_output("block_rows", blocks, block_rows, args.block_rows));
    return allocate_output("num_dropped", 1, num_dropped, args.num_dropped);
  }

  Status prepare_workspace() {
    size_t bytes = 0;
    TY_RETURN_IF_ERROR(as_status(ty_align_workspace_size(device, &args, &bytes)));
    if (bytes == 0) return {};
    TY_RETURN_IF_ERROR(
        GuardedBuffer::create(*runtime, "workspace", bytes, 0, workspace_memory, options.stream));
    TY_RETURN_IF_ERROR(
        as_status(ty_workspace_create(device, workspace_memory.data(), bytes, options.stream, &workspace)));
    return runtime->synchronize(options.stream);
  }

  // Between the rows stand ids that look valid, so that a wrong stride shows.
  template <class Id>
  std::vector<unsigned char> image(const std::vector<int64_t>& flat) const {
    std::vector<Id> laid_out(ids.size() / sizeof(Id));
    for (size_t i = 0; i < laid_out.size(); ++i) {
      const size_t row = i / static_cast<size_t>(row_stride());
      const size_t column = i % static_cast<size_t>(row_stride());
      laid_out[i] = column < static_cast<size_t>(shape.top_k)
                        ? static_cast<Id>(flat[row * static_cast<size_t>(shape.top_k) + column])
                        : static_cast<Id>(i % static_cast<size_t>(shape.experts));
    }
    std::vector<unsigned char> bytes(ids.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), laid_out.data(), bytes.size());
    return bytes;
  }

  std::vector<GuardedBuffer*> outputs() {
    std::vector<GuardedBuffer*> all{&sorted_pair_ids, &block_expert, &num_padded};
    if (options.optional_outputs) {
      all.insert(all.end(), {&counts, &offsets, &inverse, &block_rows, &num_dropped});
    }
    return all;
  }

  template <class T>
  static Status read(const GuardedBuffer& buffer, std::vector<T>& values) {
    values.resize(buffer.size() / sizeof(T));
    return buffer.read(values.data());
  }

  template <class T>
  static Status check_unchanged(const char* name, const GuardedBuffer& buffer, const std::vector<T>& image) {
    std::vector<T> now;
    TY_RETURN_IF_ERROR(read(buffer, now));
    if (now == image) return {};
    return {TY_DEVICE_ERROR, fmt::format("align changed its input {}, expected it untouched", name)};
  }
};

AlignRun::AlignRun() : state_(std::make_unique<State>()) {}
AlignRun::AlignRun(AlignRun&&) noexcept = default;
AlignRun& AlignRun::operator=(AlignRun&&) noexcept = default;
AlignRun::~AlignRun() = default;

Status AlignRun::create(ty_device device, const AlignProblem& problem, const AlignOptions& options,
                        std::optional<AlignRun>& run) {
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  TY_RETURN_IF_ERROR(backend->runtime->set_device(device.ordinal));

  AlignRun made;
  State& state = *made.state_;
  state.device = device;
  state.runtime = backend->runtime;
  state.shape = problem.shape;
  state.options = options;
  state.args = align_args(problem.shape, options.path);
  state.args.linked = options.linked ? 1 : 0;
  state.args.capacity = problem.capacity;
  state.map_image = problem.expert_map;
  state.args.expert_map =
      state.map_image.empty() ? nullptr : state.map_image.data();  // until it has its buffer
  TY_RETURN_IF_ERROR(state.prepare_workspace());  // checks the shape, before memory is taken for it
  TY_RETURN_IF_ERROR(state.allocate_inputs());
  TY_RETURN_IF_ERROR(state.allocate_outputs(problem));
  TY_RETURN_IF_ERROR(made.set_ids(problem.ids));
  run = std::move(made);
  return {};
}

Status AlignRun::poison() {
  for (GuardedBuffer* output : state_->outputs()) TY_RETURN_IF_ERROR(output->poison());
  return {};
}

Status AlignRun::set_ids(const std::vector<int64_t>& ids) {
  State& state = *state_;
  state.ids_image = state.shape.int64_ids ? state.image<int64_t>(ids) : state.image<int32_t>(ids);
  return state.ids.write(state.ids_image.data());
}

Status AlignRun::launch(Stream stream) {
  return as_status(ty_align(state_->device, &state_->args, state_->workspace, stream));
}

Status AlignRun::collect(AlignOutputs& outputs) {
  State& state = *state_;
  outputs = AlignOutputs();
  std::vector<int32_t> num_padded, num_dropped{0};
  TY_RETURN_IF_ERROR(State::read(state.sorted_pair_ids, outputs.sorted_pair_ids));
  TY_RETURN_IF_ERROR(State::read(state.block_expert, outputs.block_expert));
  TY_RETURN_IF_ERROR(State::read(state.num_padded, num_padded));
  if (state.options.optional_outputs) {
    TY_RETURN_IF_ERROR(State::read(state.counts, outputs.counts));
    TY_RETURN_IF_ERROR(State::read(state.offsets, outputs.offsets));
    TY_RETURN_IF_ERROR(State::read(state.inverse, outputs.inverse));
    TY_RETURN_IF_ERROR(State::read(state.block_rows, outputs.block_rows));
    TY_RETURN_IF_ERROR(State::read(state.num_dropped, num_dropped));
  }
  outputs.num_padded = num_padded.front();
  outputs.num_dropped = num_dropped.front();

  TY_RETURN_IF_ERROR(State::check_unchanged("topk_ids", state.ids, state.ids_image));
  if (!state.map_image.empty()) {
    TY_RETURN_IF_ERROR(State::check_unchanged("expert_map", state.expert_map, state.map_image));
  }
  if (state.workspace == nullptr) return {};
  std::vector<unsigned char> workspace;
  return State::read(state.workspace_memory, workspace);  // for its guards
}

const ty_align_args& AlignRun::args() const { return state_->args; }
ty_workspace* AlignRun::workspace() const { return state_->workspace; }

Status run_align(ty_device device, const AlignProblem& problem, const AlignOptions& options,
                 AlignOutputs& outputs) {
  std::optional<AlignRun> run;
  TY_RETURN_IF_ERROR(AlignRun::create(device, problem, options, run));
  TY_RETURN_IF_ERROR(run->launch(options.stream));
  TY_RETURN_IF_ERROR(synchronize(device, options.stream));
  return run->collect(outputs);
}

}  // namespace tokenyard::harness
