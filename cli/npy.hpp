// Integer arrays in NumPy's .npy files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tokenyard::cli {

struct IntegerArray {
  std::vector<size_t> shape;
  std::vector<int64_t> values;  // row-major
  bool fits_int32;              // by its type, not by its values
};

// Reads int8 to int64 and uint8 to uint32 in C order; anything else is an error that names `option`, the
// file, what it holds and what to do. `rank` is the number of dimensions expected.
IntegerArray read_npy(const std::string& option, const std::string& path, size_t rank);

void write_npy(const std::string& path, const std::vector<size_t>& shape, const std::vector<int32_t>& values);
void write_npy(const std::string& path, const std::vector<size_t>& shape, const std::vector<int64_t>& values);

}  // namespace tokenyard::cli
