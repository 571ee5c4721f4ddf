// What the sanitizers offer to programs that switch stacks, if one is linked in: weak symbols, because this
// code is compiled without a sanitizer in every build.
#pragma once

#include <cstddef>

extern "C" {
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
}

namespace tokenyard::port::simt {

inline bool has_tsan() { return __tsan_create_fiber != nullptr; }
inline bool has_asan() { return __sanitizer_start_switch_fiber != nullptr; }

// Tells ThreadSanitizer that what happened before release() happened before a later acquire(): the only
// order between the threads of a kernel, besides that of its own atomics.
inline void release(void* address) {
  if (has_tsan()) __tsan_release(address);
}
inline void acquire(void* address) {
  if (has_tsan()) __tsan_acquire(address);
}

}  // namespace tokenyard::port::simt
