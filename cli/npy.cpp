#include "npy.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnpy.hpp>

#include "failure.hpp"

namespace tokenyard::cli {
namespace {

// xtensor's typed load_npy() wants the element type at compile time; the file says it at run time. So this
// uses the step below, which parses the header and reads the bytes.
using File = xt::detail::npy_file;

template <class T>
std::vector<int64_t> widen(const File& file) {
  const T* first = reinterpret_cast<const T*>(file.m_buffer);
  return {first, first + file.m_n_bytes / sizeof(T)};
}

struct ElementType {
  std::vector<int64_t> (*read)(const File&);
  bool fits_int32;
};

const std::map<std::string, ElementType>& element_types() {
  static const std::map<std::string, ElementType> types{
      {"|i1", {widen<int8_t>, true}},   {"<i2", {widen<int16_t>, true}}, {"<i4", {widen<int32_t>, true}},
      {"<i8", {widen<int64_t>, false}}, {"|u1", {widen<uint8_t>, true}}, {"<u2", {widen<uint16_t>, true}},
      {"<u4", {widen<uint32_t>, false}}};
  return types;
}

// Whether the header's shape times its element's size is what follows: a damaged header must not be believed.
bool is_whole(const File& file, std::istream& stream, uintmax_t file_bytes) {
  size_t bytes = file.m_word_size;
  for (size_t extent : file.m_shape) {
    if (extent != 0 && bytes > file_bytes / extent) return false;
    bytes *= extent;
  }
  return stream.good() && bytes == file.m_n_bytes;
}

File load(const std::string& option, const std::string& path, std::istream& stream) {
  try {
    File file = xt::detail::load_npy_file(stream);
    if (!is_whole(file, stream, std::filesystem::file_size(path)))
      throw std::runtime_error("it ends too early");
    return file;
  } catch (const std::exception& error) {
    throw Failure(fmt::format("{}: {} is not a whole .npy file ({}): write it with numpy.save()", option,
                              path, error.what()));
  }
}

template <class T>
void write(const std::string& path, const std::vector<size_t>& shape, const std::vector<T>& values) {
  std::ofstream stream(path, std::ios::binary);
  xt::detail::dump_npy_stream(stream, xt::adapt(values, shape));
  if (!stream.flush()) throw Failure(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

}  // namespace

IntegerArray read_npy(const std::string& option, const std::string& path, size_t rank) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Failure(fmt::format("{}: cannot open {}: {}", option, path, std::strerror(errno)));

  const File file = load(option, path, stream);

  if (file.m_shape.size() != rank) {
    throw wrong_usage(fmt::format("{}: {} has {} dimensions, expected {}: reshape the array", option, path,
                                  file.m_shape.size(), rank));
  }
  if (file.m_fortran_order && rank > 1) {
    throw wrong_usage(
        fmt::format("{}: {} is in Fortran order, expected C order (row-major): save "
                    "numpy.ascontiguousarray() of it",
                    option, path));
  }
  const auto type = element_types().find(file.m_typestring);
  if (type == element_types().end()) {
    throw wrong_usage(
        fmt::format("{}: {} holds {}, expected little-endian integers (int8 to int64, uint8 to "
                    "uint32): convert it with .astype('int32')",
                    option, path, file.m_typestring));
  }
  return {file.m_shape, type->second.read(file), type->second.fits_int32};
}

void write_npy(const std::string& path, const std::vector<size_t>& shape,
               const std::vector<int32_t>& values) {
  write(path, shape, values);
}

void write_npy(const std::string& path, const std::vector<size_t>& shape,
               const std::vector<int64_t>& values) {
  write(path, shape, values);
}

}  // namespace tokenyard::cli
