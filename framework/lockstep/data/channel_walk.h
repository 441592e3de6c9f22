// How the channels of a field lie in a sample: element (o, c, i) of (outer, channels, inner), densely. Internal.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/shape.h"

namespace lockstep::data {

struct ChannelWalk {
  std::int64_t outer = 1, channels = 1, inner = 1;
  std::int64_t elements() const { return outer * channels * inner; }
};

// `axis` -1: all elements are one channel. Throws Error for an axis that the shape does not have.
inline ChannelWalk channel_walk(std::string_view field, const Shape& sample, std::int64_t axis) {
  if (axis < -1 || axis >= sample.rank()) {  // not check(): called for every sample
    fail("normalisation", "'{}': channel axis {}, expected -1 (none) or an axis of a sample of shape {}", field, axis,
         sample.str());
  }
  if (axis < 0) return {.inner = sample.elements()};
  ChannelWalk walk{.channels = sample[static_cast<int>(axis)]};
  for (int i = 0; i < sample.rank(); ++i) {
    if (i < axis) walk.outer *= sample[i];
    if (i > axis) walk.inner *= sample[i];
  }
  return walk;
}

}  // namespace lockstep::data
