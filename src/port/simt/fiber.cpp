#include "port/simt/fiber.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "port/simt/sanitizer.hpp"

namespace tokenyard::port::simt {
namespace {

constexpr unsigned kNoSync = 1;  // __tsan_switch_to_fiber_no_sync: a switch orders nothing

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kSanitizedStackBytes = 256 << 10;  // instrumented frames are several times larger
constexpr size_t kSkew = 576;                       // keeps the tops of stacks out of each other's cache sets
constexpr size_t kUntouched = 64;                   // bytes at the bottom that a sufficient stack leaves zero

}  // namespace

namespace context = boost::context::detail;

Fiber::~Fiber() {
  if (tsan_ != nullptr && entry_ != nullptr) __tsan_destroy_fiber(tsan_);
}

void Fiber::adopt() {
  if (has_tsan()) tsan_ = __tsan_get_current_fiber();
}

void Fiber::create(std::byte* bottom, size_t size, void (*entry)()) {
  entry_ = entry;
  bottom_ = bottom;
  size_ = size;
  if (has_tsan()) tsan_ = __tsan_create_fiber(0);
  context_ = context::make_fcontext(bottom + size, size, &Fiber::start);
}

void Fiber::switch_to(Fiber& next) {
  if (&next == this) return;
  if (has_tsan()) __tsan_switch_to_fiber(next.tsan_, kNoSync);
  if (has_asan()) __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.size_);
  Fiber* link[] = {this, &next};
  arrive(context::jump_fcontext(next.context_, link));
}

void Fiber::start(context::transfer_t from) {
  Fiber& self = *static_cast<Fiber**>(from.data)[1];
  self.arrive(from);
  self.entry_();
}

void Fiber::arrive(context::transfer_t from) {
  Fiber& last = *static_cast<Fiber**>(from.data)[0];
  last.context_ = from.fctx;
  if (has_asan()) __sanitizer_finish_switch_fiber(fake_stack_, &last.bottom_, &last.size_);
}

bool Fiber::stack_suffices() const {
  const auto* bottom = static_cast<const std::byte*>(bottom_);
  return std::all_of(bottom, bottom + kUntouched, [](std::byte b) { return b == std::byte{0}; });
}

Stacks::Stacks(int count)
    : size_(has_tsan() || has_asan() ? kSanitizedStackBytes : kStackBytes),
      stride_(size_ + kSkew),
      bytes_(stride_ * static_cast<size_t>(count)) {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
}

Stacks::~Stacks() { munmap(memory_, bytes_); }

}  // namespace tokenyard::port::simt
