// A fiber: a stack, and a place in the code to go on from.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace tokenyard::port::simt {

class Fiber {
 public:
  Fiber() = default;  // to be entered by adopt() or create()
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Makes this the running OS thread's own stack.
  void adopt();
  // Makes this a fiber that will run `entry`, which never returns, on the stack [bottom, bottom + size).
  void create(std::byte* bottom, size_t size, void (*entry)());

  // From this fiber, which is running: goes on with `next` until somebody switches back.
  void switch_to(Fiber& next);

  // False if the lowest words of the stack have been used: it was too small.
  bool stack_suffices() const;

 private:
  static void start(boost::context::detail::transfer_t from);
  void arrive(boost::context::detail::transfer_t from);

  boost::context::detail::fcontext_t context_ = nullptr;
  void (*entry_)() = nullptr;
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* tsan_ = nullptr;        // ThreadSanitizer's fiber
  void* fake_stack_ = nullptr;  // AddressSanitizer's
};

// Stacks for many fibers. Memory is taken from the system as the stacks are used, and is zero at first.
class Stacks {
 public:
  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  std::byte* bottom(int i) const { return memory_ + stride_ * static_cast<size_t>(i); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  size_t stride_;
  size_t bytes_;
  std::byte* memory_;
};

}  // namespace tokenyard::port::simt
