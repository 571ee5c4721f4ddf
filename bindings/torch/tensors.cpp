#include "tensors.hpp"

#include <limits>
#include <sstream>
#include <stdexcept>

extern "C" {
// Only a PyTorch with CUDA has it, and only there are tensors on CUDA.
AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream) __attribute__((weak));
}

namespace tokenyard::torch_binding {
namespace {

std::string device_name(const Tensor& tensor) {
  switch (tensor.device().type()) {
    case torch::headeronly::DeviceType::CPU:
      return "the CPU";
    case torch::headeronly::DeviceType::CUDA:
      return "CUDA device " + std::to_string(tensor.get_device_index());
    default:
      return "another device";
  }
}

template <class Numbers>
std::string listed(const Numbers& numbers) {
  std::ostringstream out;
  out << "[";
  for (size_t i = 0; i < numbers.size(); ++i) out << (i > 0 ? ", " : "") << numbers[i];
  out << "]";
  return out.str();
}

ty_device device_of(const char* operation, const Tensor& tensor) {
  if (tensor.is_cpu()) return {TY_CPU, 0};
  if (tensor.is_cuda()) return {TY_CUDA, tensor.get_device_index()};
  refuse(operation, "the input", "on " + device_name(tensor), "a tensor on the CPU or on CUDA",
         "move it with .to()");
}

}  // namespace

void check(ty_status status) {
  if (status != TY_OK) throw std::runtime_error(ty_last_error());
}

void refuse(const char* operation, const char* argument, const std::string& got, const std::string& expected,
            const char* remedy) {
  throw std::runtime_error(std::string(operation) + ": " + argument + " is " + got + ", expected " +
                           expected + ": " + remedy);
}

Place::Place(const char* operation, const Tensor& tensor)
    : device_(device_of(operation, tensor)),
      type_(device_.backend == TY_CPU ? aoti_torch_device_type_cpu() : aoti_torch_device_type_cuda()) {
  if (device_.backend == TY_CPU) return;
  guard_.emplace(device_.ordinal);
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device_.ordinal, &stream_));
}

Tensor Place::empty(std::initializer_list<int64_t> sizes, ScalarType dtype) const {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes.begin()[i];
  }
  const auto type = torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype));
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.begin(),
                                                  strides.data(), type, type_, device_.ordinal, &made));
  return Tensor(made);
}

int32_t to_int32(const char* operation, const char* argument, int64_t value) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (value < std::numeric_limits<int32_t>::min() || value > kMost) {
    refuse(operation, argument, std::to_string(value), "at most " + std::to_string(kMost),
           "pass a number of its range");
  }
  return static_cast<int32_t>(value);
}

std::string shape(const Tensor& tensor) { return listed(tensor.sizes()); }

std::string name(ScalarType dtype) { return torch::headeronly::toString(dtype); }

Rows rows_of(const char* operation, const char* argument, const Tensor& tensor) {
  if (tensor.dim() != 2) {
    refuse(operation, argument, "of shape " + shape(tensor), "two dimensions, a row a token",
           "reshape it to [num_tokens, ...]");
  }
  const int64_t count = tensor.size(0);
  const int64_t columns = tensor.size(1);
  const bool apart = count < 2 || tensor.stride(0) >= columns;
  const bool contiguous = columns < 2 || tensor.stride(1) == 1;
  if (tensor.numel() > 0 && !(apart && contiguous)) {
    refuse(operation, argument, "of strides " + listed(tensor.strides()),
           "contiguous rows that do not overlap: strides [at least " + std::to_string(columns) + ", 1]",
           "call .contiguous() on it");
  }
  const bool strided = tensor.numel() > 0 && count > 1;
  return {tensor.const_data_ptr(), count, to_int32(operation, argument, columns),
          strided ? tensor.stride(0) : 0};
}

void* elements_of(const char* operation, const char* argument, const std::optional<Tensor>& tensor,
                  const Place& place, ScalarType dtype, int64_t elements) {
  if (!tensor) return nullptr;
  if (tensor->scalar_type() != dtype) {
    refuse(operation, argument, "of type " + name(tensor->scalar_type()), name(dtype),
           "convert it with .to()");
  }
  const ty_device device = device_of(operation, *tensor);
  if (device.backend != place.device().backend || device.ordinal != place.device().ordinal) {
    refuse(operation, argument, "on " + device_name(*tensor), "the device of the input",
           "move it there with .to()");
  }
  if (!tensor->is_contiguous()) {
    refuse(operation, argument, "of strides " + listed(tensor->strides()), "contiguous elements",
           "call .contiguous() on it");
  }
  if (elements >= 0 && tensor->numel() != elements) {
    refuse(operation, argument, "of shape " + shape(*tensor), std::to_string(elements) + " elements",
           "give it that size");
  }
  return tensor->data_ptr();
}

}  // namespace tokenyard::torch_binding
