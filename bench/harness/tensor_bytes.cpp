#include "harness/tensor_bytes.hpp"

#include <bit>
#include <cstdint>

#include "port/floats.hpp"

namespace tokenyard::harness {
namespace {

void put(Bytes& bytes, size_t at, ty_dtype dtype, float value) {
  const auto wide = std::bit_cast<uint32_t>(value);
  const uint16_t narrow = dtype == TY_BFLOAT16 ? bfloat16_bits(value) : float16_bits(value);
  if (dtype == TY_FLOAT32) {
    std::memcpy(bytes.data() + at * sizeof wide, &wide, sizeof wide);
  } else {
    std::memcpy(bytes.data() + at * sizeof narrow, &narrow, sizeof narrow);
  }
}

float get(const Bytes& bytes, size_t at, ty_dtype dtype) {
  if (dtype == TY_FLOAT32) {
    float wide = 0;
    std::memcpy(&wide, bytes.data() + at * sizeof wide, sizeof wide);
    return wide;
  }
  uint16_t narrow = 0;
  std::memcpy(&narrow, bytes.data() + at * sizeof narrow, sizeof narrow);
  return dtype == TY_BFLOAT16 ? port::to_float(port::bfloat16{narrow})
                              : port::to_float(port::float16{narrow});
}

}  // namespace

size_t size_of(ty_dtype dtype) { return dtype == TY_FLOAT32 ? sizeof(float) : sizeof(uint16_t); }

Bytes bytes_of(const std::vector<float>& values, ty_dtype dtype) {
  Bytes bytes(values.size() * size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) put(bytes, i, dtype, values[i]);
  return bytes;
}

std::vector<float> floats_of(const Bytes& bytes, ty_dtype dtype) {
  std::vector<float> values(bytes.size() / size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) values[i] = get(bytes, i, dtype);
  return values;
}

Bytes logits_bytes(const GateShape& shape, const std::vector<float>& logits) {
  const auto experts = static_cast<size_t>(shape.experts);
  const size_t stride = shape.row_stride == 0 ? experts : static_cast<size_t>(shape.row_stride);
  const size_t elements = shape.tokens == 0 ? 0 : static_cast<size_t>(shape.tokens - 1) * stride + experts;
  Bytes bytes(elements * size_of(shape.dtype), 0xff);
  for (size_t i = 0; i < logits.size(); ++i) {
    put(bytes, i / experts * stride + i % experts, shape.dtype, logits[i]);
  }
  return bytes;
}

}  // namespace tokenyard::harness
