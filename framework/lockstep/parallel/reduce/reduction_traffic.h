// The traffic of a rank's gradients.
#pragma once

#include <cstdint>

namespace lockstep::parallel {

// Bytes that a rank moved for the sums of gradients, and nanoseconds that this took.
struct ReductionTraffic {
  std::int64_t sent = 0;        // bytes to other domains
  std::int64_t network_ns = 0;  // time with a piece in flight between domains
  std::int64_t summed = 0;      // bytes read and written by sums in the domain
  std::int64_t summing_ns = 0;
};

}  // namespace lockstep::parallel
