// A number in memory that several processes or threads see, each reading and writing it atomically. To the language it
// is a plain number: zeroed memory holds zeros, and no process constructs it. Every access goes through
// std::atomic_ref.
#pragma once

#include <atomic>
#include <type_traits>

namespace lockstep {

template <class T>
class SharedNumber {
 public:
  SharedNumber() = default;  // not initialised
  constexpr explicit SharedNumber(T value) : value_(value) {}
  static_assert(std::is_trivially_copyable_v<T> && std::atomic_ref<T>::is_always_lock_free, "processes share no lock");

  T load(std::memory_order order = std::memory_order_seq_cst) const { return std::atomic_ref<T>(value_).load(order); }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    std::atomic_ref<T>(value_).store(value, order);
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) {
    return std::atomic_ref<T>(value_).fetch_add(value, order);
  }

 private:
  alignas(std::atomic_ref<T>::required_alignment) mutable T value_;  // atomic_ref has no form that only reads
};

}  // namespace lockstep
