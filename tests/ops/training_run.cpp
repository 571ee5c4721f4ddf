#include "training_run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>

#include "device.hpp"
#include "gate/reference.hpp"
#include "harness/random.hpp"
#include "port/floats.hpp"
#include "runs.hpp"
#include "runtime/backend.hpp"
#include "runtime/text.hpp"

namespace tokenyard::test {
namespace {

// The buffers of one call, which live as long as it does.
class Buffers {
 public:
  Buffers(const std::string& device, int misalignment)
      : runtime_(*find_backend(device)->runtime), misalignment_(misalignment) {
    require(runtime_.set_device(0));
  }

  template <class T>
  T* output(const char* name, size_t count) {
    buffers_.emplace_back();
    require(harness::GuardedBuffer::create(runtime_, name, count * sizeof(T),
                                           static_cast<size_t>(misalignment_) * sizeof(T), buffers_.back()));
    return static_cast<T*>(buffers_.back().data());
  }

  template <class T>
  T* input(const char* name, const std::vector<T>& values) {
    T* memory = output<T>(name, values.size());
    require(buffers_.back().write(values.data()));
    return memory;
  }

  // After the launch; also checks the guards.
  template <class T>
  std::vector<T> read(const T* memory) {
    require(runtime_.synchronize(nullptr));
    for (const harness::GuardedBuffer& buffer : buffers_) {
      if (buffer.data() != memory) continue;
      std::vector<T> values(buffer.size() / sizeof(T));
      require(buffer.read(values.data()));
      return values;
    }
    return {};
  }

 private:
  Runtime& runtime_;
  const int misalignment_;
  std::deque<harness::GuardedBuffer> buffers_;
};

void require_ok(ty_status status) { require(status == TY_OK ? Status() : Status(status, ty_last_error())); }

// Rows as the shape has them; NaN, which would show in a result, stands between.
template <class T, class Convert>
std::vector<T> rows_of(const harness::GateProblem& problem, Convert convert) {
  const auto experts = static_cast<size_t>(problem.shape.experts);
  const size_t stride =
      problem.shape.row_stride == 0 ? experts : static_cast<size_t>(problem.shape.row_stride);
  const auto tokens = static_cast<size_t>(problem.shape.tokens);
  std::vector<T> rows(tokens == 0 ? 0 : (tokens - 1) * stride + experts, convert(std::nanf("")));
  for (size_t i = 0; i < problem.logits.size(); ++i) {
    rows[i / experts * stride + i % experts] = convert(problem.logits[i]);
  }
  return rows;
}

// Logits in, their gradient out, in any of the types.
class LogitsAndGradient {
 public:
  LogitsAndGradient(Buffers& buffers, const harness::GateProblem& problem)
      : buffers_(buffers), dtype_(problem.shape.dtype) {
    const auto count = static_cast<size_t>(problem.shape.tokens * problem.shape.experts);
    if (dtype_ == TY_FLOAT32) {
      logits = wide_ = buffers.input("logits", image_ = rows_of<float>(problem, [](float x) { return x; }));
      gradient = wide_gradient_ = buffers.output<float>("logits_grad", count);
    } else {
      const auto convert = dtype_ == TY_BFLOAT16 ? harness::bfloat16_bits : harness::float16_bits;
      logits = narrow_ = buffers.input("logits", narrow_image_ = rows_of<uint16_t>(problem, convert));
      gradient = narrow_gradient_ = buffers.output<uint16_t>("logits_grad", count);
    }
  }

  std::vector<float> read_gradient() {
    if (dtype_ == TY_FLOAT32) return buffers_.read(wide_gradient_);
    std::vector<float> widened;
    for (const uint16_t bits : buffers_.read(narrow_gradient_)) {
      widened.push_back(dtype_ == TY_BFLOAT16 ? port::to_float(port::bfloat16{bits})
                                              : port::to_float(port::float16{bits}));
    }
    return widened;
  }

  bool logits_are_untouched() {
    if (dtype_ != TY_FLOAT32) return buffers_.read(narrow_) == narrow_image_;
    const std::vector<float> now = buffers_.read(wide_);
    return now.empty() || std::memcmp(now.data(), image_.data(), now.size() * sizeof(float)) == 0;
  }

  const void* logits;
  void* gradient;

 private:
  Buffers& buffers_;
  const ty_dtype dtype_;
  const float* wide_ = nullptr;
  const uint16_t* narrow_ = nullptr;
  float* wide_gradient_ = nullptr;
  uint16_t* narrow_gradient_ = nullptr;
  std::vector<float> image_;
  std::vector<uint16_t> narrow_image_;
};

const void* put_ids(Buffers& buffers, const BackwardProblem& problem) {
  if (problem.forward.shape.int64_ids) return buffers.input("ids", problem.ids);
  return buffers.input("ids", std::vector<int32_t>(problem.ids.begin(), problem.ids.end()));
}

// The columns that were chosen, without the shared ones.
template <class T, class To>
std::vector<To> routed(const BackwardProblem& problem, const std::vector<T>& values) {
  const auto columns = static_cast<size_t>(problem.forward.columns());
  std::vector<To> kept;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % columns < static_cast<size_t>(problem.forward.shape.top_k))
      kept.push_back(static_cast<To>(values[i]));
  }
  return kept;
}

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

LossOutputs run_losses(const std::string& device, const LossProblem& problem, bool with_gradient,
                       int misalignment, const std::vector<int32_t>& offsets_there) {
  const harness::GateShape& shape = problem.chosen.forward.shape;
  const std::vector<int32_t> offsets = problem.offsets();
  Buffers buffers(device, misalignment);
  LogitsAndGradient rows(buffers, problem.chosen.forward);
  ty_router_loss_args args = TY_ROUTER_LOSS_ARGS_INIT;
  args.logits_dtype = shape.dtype;
  args.logits = rows.logits;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.score = shape.score;
  args.balance_coefficient = problem.balance_coefficient;
  args.z_coefficient = problem.z_coefficient;
  if (!problem.sequence_offsets.empty()) {
    args.sequence_offsets = buffers.input("sequence_offsets", offsets_there);
    args.num_sequences = static_cast<int32_t>(problem.sequence_offsets.size()) - 1;
  }
  const auto counted = training::reference_counts(
      routed<int64_t, int64_t>(problem.chosen, problem.chosen.ids), shape.top_k, offsets, shape.experts);
  if (problem.counts_are_given) {
    args.counts = buffers.input("counts", counted);
  } else {
    args.num_columns = problem.chosen.forward.columns();
    args.top_k = shape.top_k;
    args.ids_dtype = shape.int64_ids ? TY_INT64 : TY_INT32;
    args.ids = put_ids(buffers, problem.chosen);
    args.counts = buffers.output<int32_t>("counts", counted.size());
  }
  args.losses = buffers.output<float>("losses", 2);
  args.scratch = buffers.output<float>(
      "scratch", static_cast<size_t>(2 * ((shape.tokens + TY_ROUTER_LOSS_RUN - 1) / TY_ROUTER_LOSS_RUN)));
  if (with_gradient) args.logits_grad = rows.gradient;
  require_ok(ty_router_loss(device_id(device), &args, nullptr));
  LossOutputs outputs;
  outputs.losses = buffers.read(args.losses);
  if (with_gradient) outputs.gradient = rows.read_gradient();
  outputs.counts = buffers.read(args.counts);
  static_cast<void>(buffers.read(args.scratch));
  if (!rows.logits_are_untouched()) throw std::runtime_error("router_loss changed its logits");
  return outputs;
}

}  // namespace

BackwardProblem draw_backward(const harness::GateShape& shape) {
  BackwardProblem problem{harness::draw(shape), {}, {}};
  problem.ids = gate::reference(problem.forward.reference_input()).ids;
  harness::Random random(shape.seed + 1);
  for (size_t i = 0; i < problem.ids.size(); ++i) {
    problem.weights_grad.push_back(static_cast<float>(random.between(-1000, 1000)) / 512);
  }
  return problem;
}

std::vector<float> backward_on(const std::string& device, const BackwardProblem& problem, int misalignment) {
  const harness::GateShape& shape = problem.forward.shape;
  Buffers buffers(device, misalignment);
  LogitsAndGradient rows(buffers, problem.forward);
  ty_gate_backward_args args = TY_GATE_BACKWARD_ARGS_INIT;
  args.logits_dtype = shape.dtype;
  args.logits = rows.logits;
  args.num_tokens = shape.tokens;
  args.row_stride = shape.row_stride;
  args.num_experts = shape.experts;
  args.top_k = shape.top_k;
  args.score = shape.score;
  args.weight_mode = shape.weights;
  args.epsilon = shape.epsilon;
  args.scale = shape.scale;
  args.num_shared_experts = shape.shared;
  args.ids_dtype = shape.int64_ids ? TY_INT64 : TY_INT32;
  args.ids = put_ids(buffers, problem);
  args.weights_grad = buffers.input("weights_grad", problem.weights_grad);
  args.logits_grad = rows.gradient;
  require_ok(ty_gate_backward(device_id(device), &args, nullptr));
  const std::vector<float> gradient = rows.read_gradient();
  if (!rows.logits_are_untouched()) throw std::runtime_error("gate_backward changed its logits");
  return gradient;
}

training::ReferenceGradient backward_of_reference(const BackwardProblem& problem) {
  const harness::GateShape& shape = problem.forward.shape;
  const std::vector<double> logits = widened(problem.forward.logits);
  const auto ids = routed<int64_t, int64_t>(problem, problem.ids);
  const auto weights_grad = routed<float, double>(problem, problem.weights_grad);
  return training::reference_backward({.logits = logits,
                                       .ids = ids,
                                       .weights_grad = weights_grad,
                                       .num_experts = shape.experts,
                                       .top_k = shape.top_k,
                                       .score = shape.score,
                                       .weight_mode = shape.weights,
                                       .epsilon = shape.epsilon,
                                       .scale = shape.scale});
}

std::vector<int32_t> LossProblem::offsets() const {
  if (!sequence_offsets.empty()) return sequence_offsets;
  return {0, static_cast<int32_t>(chosen.forward.shape.tokens)};
}

LossProblem draw_loss(const harness::GateShape& shape, int32_t sequences) {
  LossProblem problem{.chosen = draw_backward(shape), .sequence_offsets = {}};
  if (sequences == 0) return problem;
  harness::Random random(shape.seed + 2);
  // Some sequences are empty; the first tokens and the last may be in none.
  for (int32_t s = 0; s <= sequences; ++s) {
    problem.sequence_offsets.push_back(static_cast<int32_t>(random.between(0, shape.tokens)));
  }
  std::sort(problem.sequence_offsets.begin(), problem.sequence_offsets.end());
  return problem;
}

LossOutputs losses_on(const std::string& device, const LossProblem& problem, bool with_gradient,
                      int misalignment) {
  return run_losses(device, problem, with_gradient, misalignment, problem.sequence_offsets);
}

LossOutputs losses_with_offsets(const std::string& device, const LossProblem& problem,
                                const std::vector<int32_t>& offsets) {
  return run_losses(device, problem, true, 0, offsets);
}

training::ReferenceLoss loss_of_reference(const LossProblem& problem) {
  const harness::GateShape& shape = problem.chosen.forward.shape;
  const std::vector<double> logits = widened(problem.chosen.forward.logits);
  const std::vector<int32_t> offsets = problem.offsets();
  const auto counts = training::reference_counts(routed<int64_t, int64_t>(problem.chosen, problem.chosen.ids),
                                                 shape.top_k, offsets, shape.experts);
  return training::reference_loss({.logits = logits,
                                   .sequence_offsets = offsets,
                                   .counts = counts,
                                   .num_experts = shape.experts,
                                   .score = shape.score,
                                   .balance_coefficient = problem.balance_coefficient,
                                   .z_coefficient = problem.z_coefficient});
}

BalanceOutputs balance_on(const std::string& device, const std::vector<int64_t>& counts, bool int64_counts,
                          float rate, const std::vector<float>& bias) {
  Buffers buffers(device, 1);
  ty_balance_args args = TY_BALANCE_ARGS_INIT;
  args.num_experts = static_cast<int32_t>(counts.size());
  args.rate = rate;
  args.counts_dtype = int64_counts ? TY_INT64 : TY_INT32;
  if (int64_counts) {
    args.counts = buffers.input("counts", counts);
  } else {
    args.counts = buffers.input("counts", std::vector<int32_t>(counts.begin(), counts.end()));
  }
  if (!bias.empty()) args.bias = buffers.input("bias", bias);
  args.statistics = buffers.output<float>("statistics", 4);
  require_ok(ty_balance(device_id(device), &args, nullptr));
  return {buffers.read(args.bias), buffers.read(args.statistics)};
}

std::string difference(const std::vector<float>& got, const training::ReferenceGradient& want,
                       ty_dtype dtype) {
  if (got.size() != want.value.size()) return "the gradient is not of the right size";
  const double of_type = dtype == TY_FLOAT32 ? 0 : dtype == TY_BFLOAT16 ? 0x1p-8 : 0x1p-11;
  const double least = dtype == TY_FLOAT16 ? 0x1p-24 : 0x1p-120;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = 1e-5 * want.magnitude[i] + of_type * std::fabs(want.value[i]) + least;
    if (!(std::fabs(got[i] - want.value[i]) <= allowed)) {
      return text("number ", i, " of the gradient is ", got[i], ", expected ", want.value[i], " to ",
                  allowed);
    }
  }
  return "";
}

std::string difference(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return "not of the same size";
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) != std::bit_cast<uint32_t>(want[i])) {
      return text("number ", i, " is ", got[i], ", expected the bits of ", want[i]);
    }
  }
  return "";
}

std::string difference(const LossOutputs& got, const LossOutputs& want) {
  if (got.counts != want.counts) return "the counts differ";
  const std::string losses = difference(got.losses, want.losses);
  return losses.empty() ? difference(got.gradient, want.gradient) : losses;
}

}  // namespace tokenyard::test
