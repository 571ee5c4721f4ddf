// What a runtime handed out, given back at the end of its life.
#pragma once

#include <memory>

#include "runtime/runtime.hpp"

namespace tokenyard::cli {

// An error while giving back has nobody to tell.
inline std::shared_ptr<void> owned(Runtime& runtime, void* handle, Status (Runtime::*release)(void*)) {
  return {handle, [&runtime, release](void* old) { static_cast<void>((runtime.*release)(old)); }};
}

}  // namespace tokenyard::cli
