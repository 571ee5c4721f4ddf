#include "harness/gate_run.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "harness/guarded_buffer.hpp"
#include "harness/synchronize.hpp"

namespace tokenyard::harness {
namespace {

using Bytes = std::vector<unsigned char>;

Status as_status(ty_status code) { return code == TY_OK ? Status() : Status(code, ty_last_error()); }

size_t size_of(ty_dtype dtype) { return dtype == TY_FLOAT32 ? sizeof(float) : sizeof(uint16_t); }

void put(Bytes& bytes, size_t at, ty_dtype dtype, float value) {
  const uint32_t wide = std::bit_cast<uint32_t>(value);
  const uint16_t narrow = dtype == TY_BFLOAT16 ? bfloat16_bits(value) : float16_bits(value);
  if (dtype == TY_FLOAT32) {
    std::memcpy(bytes.data() + at * sizeof wide, &wide, sizeof wide);
  } else {
    std::memcpy(bytes.data() + at * sizeof narrow, &narrow, sizeof narrow);
  }
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

ty_gate_args gate_args(const GateShape& shape) {
  alignas(16) static const int32_t some_memory = 0;  // says that there is a bias or a table; nobody reads it
  ty_gate_args args = TY_GATE_ARGS_INIT;
  args.logits_dtype = shape.dtype;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.top_k = shape.top_k;
  args.score = shape.score;
  args.weight_mode = shape.weights;
  if (shape.bias) args.bias = &some_memory;
  args.bias_dtype = shape.bias_as_logits ? shape.dtype : TY_FLOAT32;
  args.num_groups = shape.groups;
  args.kept_groups = shape.kept_groups;
  args.group_score = shape.group_score;
  args.epsilon = shape.epsilon;
  args.scale = shape.scale;
  args.num_shared_experts = shape.shared;
  args.shared_mode = shape.shared_of_sum ? TY_GATE_SHARED_OF_SUM : TY_GATE_SHARED_FIXED;
  args.shared_weight = shape.shared_weight;
  if (shape.replicas > 0) {
    args.replicas = args.num_replicas = &some_memory;
    args.max_replicas = shape.replicas;
    args.num_physical_experts = shape.experts * shape.replicas;
  }
  args.ids_dtype = shape.int64_ids ? TY_INT64 : TY_INT32;
  return args;
}

struct GateRun::State {
  struct Input {
    GuardedBuffer buffer;
    Bytes image;  // what must still be there after a launch
  };

  ty_device device{};
  Runtime* runtime = nullptr;
  GateShape shape;
  GateOptions options;
  ty_gate_args args{};
  Input logits, bias, replicas, num_replicas, num_real_tokens;
  GuardedBuffer ids, weights, counts, physical_counts;

  int64_t row_stride() const { return shape.row_stride == 0 ? shape.experts : shape.row_stride; }

  Status allocate(const char* name, int64_t elements, size_t element_bytes, GuardedBuffer& buffer) {
    return GuardedBuffer::create(*runtime, name, static_cast<size_t>(elements) * element_bytes,
                                 static_cast<size_t>(options.misalignment) * element_bytes, buffer,
                                 options.stream);
  }

  Status set(const char* name, size_t element_bytes, Bytes image, Input& input) {
    input.image = std::move(image);
    TY_RETURN_IF_ERROR(allocate(name, static_cast<int64_t>(input.image.size() / element_bytes), element_bytes,
                                input.buffer));
    return input.buffer.write(input.image.data());
  }

  // What stands between rows is NaN, which would show in a result.
  Bytes logits_image(const std::vector<float>& flat) const {
    const auto stride = static_cast<size_t>(row_stride());
    const auto experts = static_cast<size_t>(shape.experts);
    // The last row ends with its last logit, not with a stride.
    const size_t elements = shape.tokens == 0 ? 0 : static_cast<size_t>(shape.tokens - 1) * stride + experts;
    Bytes image(elements * size_of(shape.dtype), 0xff);
    for (size_t i = 0; i < flat.size(); ++i) {
      put(image, i / experts * stride + i % experts, shape.dtype, flat[i]);
    }
    return image;
  }

  Status set_inputs(const GateProblem& problem) {
    TY_RETURN_IF_ERROR(set("logits", size_of(shape.dtype), logits_image(problem.logits), logits));
    args.logits = logits.buffer.data();
    if (shape.bias) {
      const ty_dtype dtype = shape.bias_as_logits ? shape.dtype : TY_FLOAT32;
      Bytes image(problem.bias.size() * size_of(dtype));
      for (size_t e = 0; e < problem.bias.size(); ++e) put(image, e, dtype, problem.bias[e]);
      TY_RETURN_IF_ERROR(set("bias", size_of(dtype), std::move(image), bias));
      args.bias = bias.buffer.data();
    }
    if (shape.replicas > 0) {
      TY_RETURN_IF_ERROR(set("replicas", sizeof(int32_t), bytes_of(problem.replicas), replicas));
      TY_RETURN_IF_ERROR(set("num_replicas", sizeof(int32_t), bytes_of(problem.num_replicas), num_replicas));
      args.replicas = static_cast<const int32_t*>(replicas.buffer.data());
      args.num_replicas = static_cast<const int32_t*>(num_replicas.buffer.data());
    }
    if (shape.padding >= 0) {
      const std::vector<int32_t> real{static_cast<int32_t>(problem.num_real_tokens())};
      TY_RETURN_IF_ERROR(set("num_real_tokens", sizeof(int32_t), bytes_of(real), num_real_tokens));
      args.num_real_tokens = static_cast<const int32_t*>(num_real_tokens.buffer.data());
    }
    return {};
  }

  Status allocate_outputs(const GateProblem& problem) {
    const int64_t elements = shape.tokens * problem.columns();
    TY_RETURN_IF_ERROR(allocate("ids", elements, shape.int64_ids ? sizeof(int64_t) : sizeof(int32_t), ids));
    TY_RETURN_IF_ERROR(allocate("weights", elements, sizeof(float), weights));
    args.ids = ids.data();
    args.weights = static_cast<float*>(weights.data());
    if (!options.optional_outputs) return {};
    TY_RETURN_IF_ERROR(allocate("counts", shape.experts, sizeof(int32_t), counts));
    args.counts = static_cast<int32_t*>(counts.data());
    if (shape.replicas == 0) return {};
    TY_RETURN_IF_ERROR(
        allocate("physical_counts", problem.num_physical_experts(), sizeof(int32_t), physical_counts));
    args.physical_counts = static_cast<int32_t*>(physical_counts.data());
    return {};
  }

  template <class T>
  static Status read(const GuardedBuffer& buffer, std::vector<T>& values) {
    values.resize(buffer.size() / sizeof(T));
    return buffer.size() == 0 ? Status() : buffer.read(values.data());
  }

  Status check_unchanged(const char* name, const Input& input) const {
    Bytes now;
    TY_RETURN_IF_ERROR(read(input.buffer, now));
    if (now == input.image) return {};
    return {TY_DEVICE_ERROR, fmt::format("gate changed its input {}, expected it untouched", name)};
  }
};

GateRun::GateRun() : state_(std::make_unique<State>()) {}
GateRun::GateRun(GateRun&&) noexcept = default;
GateRun& GateRun::operator=(GateRun&&) noexcept = default;
GateRun::~GateRun() = default;

Status GateRun::create(ty_device device, const GateProblem& problem, const GateOptions& options,
                       std::optional<GateRun>& run) {
  const Backend* backend = nullptr;
  const DeviceProperties* properties = nullptr;
  TY_RETURN_IF_ERROR(find_device(device, &backend, &properties));
  TY_RETURN_IF_ERROR(backend->runtime->set_device(device.ordinal));

  GateRun made;
  State& state = *made.state_;
  state.device = device;
  state.runtime = backend->runtime;
  state.shape = problem.shape;
  state.options = options;
  state.args = gate_args(problem.shape);
  state.args.lanes = options.lanes;
  TY_RETURN_IF_ERROR(state.set_inputs(problem));
  TY_RETURN_IF_ERROR(state.allocate_outputs(problem));
  run = std::move(made);
  return {};
}

Status GateRun::poison() {
  for (GuardedBuffer* output : {&state_->ids, &state_->weights, &state_->counts, &state_->physical_counts}) {
    if (output->size() > 0) TY_RETURN_IF_ERROR(output->poison());
  }
  return {};
}

Status GateRun::set_logits(const std::vector<float>& logits) {
  state_->logits.image = state_->logits_image(logits);
  return state_->logits.buffer.write(state_->logits.image.data());
}

Status GateRun::launch(Stream stream) { return launch(stream, logits()); }

Status GateRun::launch(Stream stream, const void* logits) {
  ty_gate_args args = state_->args;
  args.logits = logits;
  return as_status(ty_gate(state_->device, &args, stream));
}

Status GateRun::collect(GateOutputs& outputs) {
  State& state = *state_;
  outputs = GateOutputs();
  if (state.shape.int64_ids) {
    TY_RETURN_IF_ERROR(State::read(state.ids, outputs.ids));
  } else {
    std::vector<int32_t> narrow;
    TY_RETURN_IF_ERROR(State::read(state.ids, narrow));
    outputs.ids.assign(narrow.begin(), narrow.end());
  }
  TY_RETURN_IF_ERROR(State::read(state.weights, outputs.weights));
  TY_RETURN_IF_ERROR(State::read(state.counts, outputs.counts));
  TY_RETURN_IF_ERROR(State::read(state.physical_counts, outputs.physical_counts));
  for (const auto& [name, input] :
       {std::pair{"logits", &state.logits}, std::pair{"bias", &state.bias},
        std::pair{"replicas", &state.replicas}, std::pair{"num_replicas", &state.num_replicas},
        std::pair{"num_real_tokens", &state.num_real_tokens}}) {
    TY_RETURN_IF_ERROR(state.check_unchanged(name, *input));
  }
  return {};
}

const ty_gate_args& GateRun::args() const { return state_->args; }

Status run_gate(ty_device device, const GateProblem& problem, const GateOptions& options,
                GateOutputs& outputs) {
  std::optional<GateRun> run;
  TY_RETURN_IF_ERROR(GateRun::create(device, problem, options, run));
  TY_RETURN_IF_ERROR(run->launch(nullptr));
  TY_RETURN_IF_ERROR(synchronize(device));
  return run->collect(outputs);
}

}  // namespace tokenyard::harness
