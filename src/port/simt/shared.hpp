// Shared memory whose mistakes show: an array knows its bounds and which of its elements were written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "port/simt/executor.hpp"
#include "runtime/text.hpp"

namespace tokenyard::port::simt {

// Its bits, zero-extended: how values of any type pass to the executor.
template <class T>
uint64_t to_bits(const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

// What array(i) returns: stands for a T&. It converts only as a temporary, so that `auto x = array(i)`,
// which would be a reference here and a value on a GPU, does not compile once x is used.
template <class T>
class Cell {
 public:
  Cell(T& value, Mark& mark, const Site& site) : value_(value), mark_(mark), site_(site) {}
  Cell(const Cell&) = delete;

  operator T() const&& {
    before_shared_read(mark_, site_);
    return value_;
  }
  T operator=(T value) && {
    before_shared_write(mark_, &value_, to_bits(value), sizeof(T), site_);
    return value_ = value;
  }
  template <class U>
  T operator=(Cell<U>&& other) && {
    return std::move(*this) = static_cast<T>(static_cast<U>(std::move(other)));
  }
  T operator+=(T value) && {
    return update([&](T old) { return old + value; });
  }
  T operator-=(T value) && {
    return update([&](T old) { return old - value; });
  }
  T operator|=(T value) && {
    return update([&](T old) { return old | value; });
  }
  T operator&=(T value) && {
    return update([&](T old) { return old & value; });
  }
  T operator++() && {
    return update([](T old) { return old + 1; });
  }

  // Relaxed atomics.
  void store(T value) const {
    before_shared_write(mark_, &value_, to_bits(value), sizeof(T), site_);
    std::atomic_ref(value_).store(value, std::memory_order_relaxed);
  }
  T fetch_add(T value) const {
    before_shared_add(mark_, value != 0, site_);
    return std::atomic_ref(value_).fetch_add(value, std::memory_order_relaxed);
  }
  void fetch_or(T value) const {
    before_shared_add(mark_, value != 0, site_);
    std::atomic_ref(value_).fetch_or(value, std::memory_order_relaxed);
  }

 private:
  template <class Change>
  T update(Change change) {
    before_shared_read(mark_, site_);
    const T value = static_cast<T>(change(value_));
    before_shared_write(mark_, &value_, to_bits(value), sizeof(T), site_);
    return value_ = value;
  }

  T& value_;
  Mark& mark_;
  Site site_;
};

// A value where a kernel may also pass array(i).
template <class T>
struct ValueOf {
  using type = T;
};
template <class T>
struct ValueOf<Cell<T>> {
  using type = T;
};
template <class T>
using Value = typename ValueOf<std::remove_cvref_t<T>>::type;

// N elements of shared memory. Never constructed: a block's memory starts as poison.
template <class T, int N>
class Array {
 public:
  Cell<T> operator()(int64_t i, const Site& site = Site::current()) {
    expect_inside(i, site);
    return Cell<T>(value_[i], mark_[i], site);
  }

  // What a neighbour of the cluster sends.
  void receive(int64_t i, T value, const Site& site) {
    expect_inside(i, site);
    before_shared_receive(mark_[i], site);
    value_[i] = value;
  }

 private:
  static void expect_inside(int64_t i, const Site& site) {
    if (i < 0 || i >= N) fail(text("index ", i, " of an array of ", N, " in shared memory"), site);
  }

  T value_[N];
  Mark mark_[N];
};

// How many bytes a block still expects from its neighbours. Only what is sent orders memory.
class Inbox {
 public:
  void open(uint32_t bytes, const Site& site) {
    before_shared_write(mark_, &missing_, bytes, sizeof bytes, site);
    std::atomic_ref(missing_).store(bytes, std::memory_order_relaxed);
  }
  void receive(uint32_t bytes, const Site& site) {
    before_shared_add(mark_, true, site);
    if (std::atomic_ref(missing_).fetch_sub(bytes, std::memory_order_release) < bytes) {
      fail("sends more than the neighbour's inbox was opened for", site);
    }
  }
  bool full(const Site& site) {
    before_shared_read(mark_, site);
    return std::atomic_ref(missing_).load(std::memory_order_acquire) == 0;
  }

 private:
  uint32_t missing_;
  Mark mark_;
};

}  // namespace tokenyard::port::simt
