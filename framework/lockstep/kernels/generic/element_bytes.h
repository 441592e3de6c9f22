// Kernels that only move elements know them by their size alone. Any thread may call this function.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels::generic {

// Calls f with an unsigned integer of `bytes` bytes: 1, 2, 4 or 8.
template <class F>
void with_element_of(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 8:
      return f(std::uint64_t{});
    case 4:
      return f(std::uint32_t{});
    case 2:
      return f(std::uint16_t{});
    default:
      return f(std::uint8_t{});
  }
}

}  // namespace lockstep::kernels::generic
