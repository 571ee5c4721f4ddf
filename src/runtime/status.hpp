// Errors inside the library: a code and a finished sentence. The C ABI turns them into ty_status and
// ty_last_error().
#pragma once

#include <string>
#include <utility>

#include "tokenyard/tokenyard.h"

namespace tokenyard {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ty_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == TY_OK; }
  ty_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ty_status code_ = TY_OK;
  std::string message_;
};

}  // namespace tokenyard

// Leaves the function with the status unless it is OK.
#define TY_RETURN_IF_ERROR(expression)             \
  do {                                             \
    ::tokenyard::Status ty_status_ = (expression); \
    if (!ty_status_.ok()) return ty_status_;       \
  } while (false)
