#include "command.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tokenyard::test {

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error(fmt::format("cannot read {}", path));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Result tokenyard(const std::string& arguments, const std::string& folder) {
  const TemporaryFolder outputs;
  const std::string out = outputs.file("out");
  const std::string err = outputs.file("err");
  const std::string line = fmt::format("cd '{}' && COLUMNS=80 '{}' {} >'{}' 2>'{}'", folder,
                                       TOKENYARD_COMMAND, arguments, out, err);
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tokenyard-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(fmt::format("cannot make {}", name));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code nobody_to_tell;
  std::filesystem::remove_all(path_, nobody_to_tell);
}

}  // namespace tokenyard::test
