// .npy files as their specification describes them, byte by byte: independent of the command's own reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokenyard::test {

std::string npy_header(const std::string& descr, bool fortran_order, const std::string& shape);

template <class T>
std::string npy_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void write_file(const std::string& path, const std::string& content);

struct Npy {
  std::string descr;
  std::string shape;  // "(3, 2)"
  std::vector<int64_t> values;
};

// Reads <i4 and <i8.
Npy read_npy(const std::string& path);

}  // namespace tokenyard::test
