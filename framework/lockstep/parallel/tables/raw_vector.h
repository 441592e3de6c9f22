// A vector whose new elements have no value until they are written: memory that is then filled in one pass is not set
// to zero before.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::parallel {

template <class T>
struct RawAllocator : std::allocator<T> {
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Args>
  void construct(U* element, Args&&... args) {
    ::new (static_cast<void*>(element)) U(std::forward<Args>(args)...);
  }
};

template <class T>
using RawVector = std::vector<T, RawAllocator<T>>;

}  // namespace lockstep::parallel
