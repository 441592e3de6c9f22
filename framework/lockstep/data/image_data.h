// The statistics of the pixels of images.
#pragma once

#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct PixelStatistics {
  std::vector<float> mean, stddev;  // per channel, of pixels in [0, 1]
};
// Computes mean and standard deviation, per channel, of the field "image" (U8, scaled to [0, 1]) over all samples. The
// sums are exact, so all machines get the same values. Throws Error if the set has no pixels or no such field.
PixelStatistics pixel_statistics(const Dataset& dataset);

// Returns the statistics with one value per channel, where they have one for all.
PixelStatistics per_channel(PixelStatistics pixels, std::int64_t channels);

}  // namespace lockstep::data
