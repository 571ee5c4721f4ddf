// How a subcommand ends early. main() prints "tokenyard <subcommand>: <message>" and leaves with the code.
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/status.hpp"

namespace tokenyard::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, int exit_code = kExitFailure)
      : std::runtime_error(message), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The user asked for what the contract does not allow.
inline Failure wrong_usage(const std::string& message) { return Failure(message, kExitUsage); }

// The library's own sentence becomes the tool's.
inline void require(const Status& status) {
  if (!status.ok()) {
    throw Failure(status.message(), status.code() == TY_INVALID_ARGUMENT ? kExitUsage : kExitFailure);
  }
}

// The same for a call of the C ABI.
inline void require(ty_status code) {
  if (code != TY_OK) require(Status(code, ty_last_error()));
}

}  // namespace tokenyard::cli
