#include "view.hpp"

#include <limits>
#include <sstream>

#include "tokenyard/tokenyard.hpp"

namespace tokenyard::binding {
namespace {

std::string listed(std::span<const int64_t> numbers) {
  std::ostringstream out;
  out << "[";
  for (size_t i = 0; i < numbers.size(); ++i) out << (i > 0 ? ", " : "") << numbers[i];
  out << "]";
  return out.str();
}

std::string name(ty_device device) {
  if (device.backend == TY_CPU) return "the CPU";
  return (device.backend == TY_CUDA ? "CUDA device " : "HIP device ") + std::to_string(device.ordinal);
}

bool is_contiguous(const View& view) {
  if (elements(view) == 0) return true;
  int64_t stride = 1;
  for (size_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.sizes[i];
  }
  return true;
}

}  // namespace

const char* name(ty_dtype dtype) {
  switch (dtype) {
    case TY_INT32:
      return "int32";
    case TY_INT64:
      return "int64";
    case TY_FLOAT32:
      return "float32";
    case TY_BFLOAT16:
      return "bfloat16";
    default:
      return "float16";
  }
}

std::string shape(const View& view) { return listed(view.sizes); }

int64_t elements(const View& view) {
  int64_t number = 1;
  for (int64_t size : view.sizes) number *= size;
  return number;
}

void refuse(const char* operation, const char* argument, const std::string& got, const std::string& expected,
            const char* remedy) {
  throw Error(TY_INVALID_ARGUMENT, std::string(operation) + ": " + argument + " is " + got + ", expected " +
                                       expected + ": " + remedy);
}

int32_t to_int32(const char* operation, const char* argument, int64_t value) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (value < kLeast || value > kMost) {
    refuse(operation, argument, std::to_string(value), "at most " + std::to_string(kMost),
           "pass a number of its range");
  }
  return static_cast<int32_t>(value);
}

Rows rows_of(const char* operation, const char* argument, const View& view) {
  if (view.sizes.size() != 2) {
    refuse(operation, argument, "of shape " + shape(view), "two dimensions, a row a token",
           "reshape it to [num_tokens, ...]");
  }
  const int64_t count = view.sizes[0];
  const int64_t columns = view.sizes[1];
  const bool apart = count < 2 || view.strides[0] >= columns;
  const bool contiguous = columns < 2 || view.strides[1] == 1;
  const bool empty = count == 0 || columns == 0;
  if (!empty && !(apart && contiguous)) {
    refuse(operation, argument, "of strides " + listed(view.strides),
           "contiguous rows that do not overlap: strides [at least " + std::to_string(columns) + ", 1]",
           "make a contiguous copy");
  }
  return {view.data, count, to_int32(operation, argument, columns),
          empty || count == 1 ? 0 : view.strides[0]};
}

void* elements_of(const char* operation, const char* argument, const std::optional<View>& view,
                  ty_device device, int32_t dtype, int64_t number) {
  if (!view) return nullptr;
  if (view->dtype != dtype) {
    refuse(operation, argument, std::string("of type ") + view->dtype_name,
           name(static_cast<ty_dtype>(dtype)), "convert it");
  }
  if (view->device.backend != device.backend || view->device.ordinal != device.ordinal) {
    refuse(operation, argument, "on " + name(view->device), name(device) + ", as the input", "move it there");
  }
  if (!is_contiguous(*view)) {
    refuse(operation, argument, "of strides " + listed(view->strides), "contiguous elements",
           "make a contiguous copy");
  }
  if (elements(*view) != number) {
    refuse(operation, argument, "of shape " + shape(*view), std::to_string(number) + " elements",
           "give it that size");
  }
  return view->data;
}

}  // namespace tokenyard::binding
