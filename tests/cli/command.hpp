// Runs the tokenyard command and keeps what it said.
#pragma once

#include <filesystem>
#include <string>

namespace tokenyard::test {

struct Result {
  int exit_code;
  std::string out;
  std::string err;
};

// `arguments` go through a shell, started in `folder`. 80 columns, no terminal.
Result tokenyard(const std::string& arguments, const std::string& folder = ".");

// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

}  // namespace tokenyard::test
