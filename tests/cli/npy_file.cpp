#include "npy_file.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

#include "command.hpp"

namespace tokenyard::test {
namespace {

constexpr size_t kPrefix = 10;  // magic, version, length of the header

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t from = text.find(before) + before.size();
  return text.substr(from, text.find(after, from) - from);
}

template <class T>
std::vector<int64_t> decode(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

}  // namespace

std::string npy_header(const std::string& descr, bool fortran_order, const std::string& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr,
                                 fortran_order ? "True" : "False", shape);
  text.resize((kPrefix + text.size()) / 64 * 64 + 64 - kPrefix, ' ');
  text.back() = '\n';
  const std::string version("\x93NUMPY\x01\x00", 8);
  return version + static_cast<char>(text.size() & 0xff) + static_cast<char>(text.size() >> 8) + text;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream stream(path, std::ios::binary);
  stream << content;
  if (!stream.flush()) throw std::runtime_error(fmt::format("cannot write {}", path));
}

Npy read_npy(const std::string& path) {
  const std::string content = read_file(path);
  const auto byte = [&](size_t at) {
    return static_cast<size_t>(static_cast<unsigned char>(content.at(at)));
  };
  const size_t header_bytes = byte(kPrefix - 2) + 256 * byte(kPrefix - 1);
  const std::string header = content.substr(kPrefix, header_bytes);
  const std::string data = content.substr(kPrefix + header_bytes);
  const std::string descr = between(header, "'descr': '", "'");
  const std::string shape = between(header, "'shape': ", ")") + ")";
  return {descr, shape, descr == "<i8" ? decode<int64_t>(data) : decode<int32_t>(data)};
}

}  // namespace tokenyard::test
