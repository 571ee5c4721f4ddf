// A backend whose every answer a test decides: for what the real ones do only in bad times.
#pragma once

#include <functional>

#include "runtime/backend.hpp"

namespace tokenyard::test {

inline constexpr int32_t kScriptedBackend = 1000;  // two devices of it

struct Script {
  size_t workspace_bytes = 0;
  std::function<Status(const Workspace&)> run = [](const Workspace&) { return Status(); };
  Stream captured_stream = nullptr;  // is_capturing() says yes for this one, unless it is null
  int filled_bytes = 0;              // what fill() was asked for last
};

// Adds the backend on the first call. The script starts anew.
Script& restart_script();

}  // namespace tokenyard::test
