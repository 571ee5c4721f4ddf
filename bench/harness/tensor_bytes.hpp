// Tensors as they lie in device memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "harness/gate_problem.hpp"

namespace tokenyard::harness {

using Bytes = std::vector<unsigned char>;

size_t size_of(ty_dtype dtype);  // of a floating-point type

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Numbers cut to a floating-point type, and those of one widened.
Bytes bytes_of(const std::vector<float>& values, ty_dtype dtype);
std::vector<float> floats_of(const Bytes& bytes, ty_dtype dtype);

// Logits [tokens, experts], row by row with the shape's stride. What stands between rows is NaN, which would
// show in a result; the last row ends with its last logit.
Bytes logits_bytes(const GateShape& shape, const std::vector<float>& logits);

}  // namespace tokenyard::harness
