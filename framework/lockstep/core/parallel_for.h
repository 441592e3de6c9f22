// A loop over independent items on the OpenMP threads of the process, if the loop is long enough to pay for waking
// them.
#pragma once

#include <cstdint>

namespace lockstep {

namespace detail {
using RangeBody = void (*)(const void* context, std::int64_t begin, std::int64_t end);
void run_ranges(std::int64_t count, std::int64_t work, RangeBody body, const void* context);
}  // namespace detail

// Calls body(begin, end) for contiguous parts of [0, count), on several OpenMP threads when count * work (elements
// touched) is large enough. The items must be independent, as their division depends on the number of threads. `body`
// must not throw.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t work, const Body& body) {
  detail::run_ranges(
      count, work,
      [](const void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      &body);
}

}  // namespace lockstep
