// Checks that every operation's contract makes of its arguments, and the sentences of those that fail:
// operation, argument, what came, what was expected, what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/status.hpp"
#include "runtime/text.hpp"
#include "tokenyard/tokenyard.h"

namespace tokenyard {

// Size queries and explanations allow null pointers.
enum class Pointers { kRequired, kMayBeNull };

class Check {
 public:
  constexpr explicit Check(const char* operation) : operation_(operation) {}

  Status invalid(const char* argument, const std::string& got, const std::string& expected,
                 const char* remedy) const {
    return {TY_INVALID_ARGUMENT,
            text(operation_, ": ", argument, " is ", got, ", expected ", expected, ": ", remedy)};
  }

  Status range(const char* argument, int64_t got, int64_t low, int64_t high, const char* remedy) const {
    if (got >= low && got <= high) return {};
    return invalid(argument, text(got), text(low, " to ", high), remedy);
  }

  // `alignment` in bytes.
  Status pointer(const char* argument, const void* pointer, size_t alignment, bool required) const {
    if (pointer == nullptr) {
      if (!required) return {};
      return invalid(argument, "NULL", "a pointer", "pass memory of the device that the call names");
    }
    if (reinterpret_cast<uintptr_t>(pointer) % alignment == 0) return {};
    return invalid(argument, text("at address ", pointer), text("a multiple of ", alignment),
                   "align it to its element type");
  }

  // Copies a struct of any version from the first on over `args`, which holds the values of fields that an
  // older one lacks.
  template <class Args>
  Status read(const Args* given, size_t first_size, const char* type, const char* initialiser,
              Args& args) const {
    if (given == nullptr) {
      return invalid("args", "NULL", text("a ", type), "pass the address of the struct");
    }
    if (given->struct_size < first_size) {
      return {TY_INVALID_ARGUMENT,
              text(operation_, ": struct_size is ", given->struct_size, ", expected at least ", first_size,
                   ": initialise the struct with ", initialiser)};
    }
    if (given->struct_size > sizeof(Args)) {
      return {TY_INVALID_ARGUMENT,
              text(operation_, ": struct_size is ", given->struct_size, ", expected at most ", sizeof(Args),
                   ": the header is newer than the library (", ty_version(), "); update the library")};
    }
    std::memcpy(&args, given, given->struct_size);
    return {};
  }

 private:
  const char* operation_;
};

}  // namespace tokenyard
