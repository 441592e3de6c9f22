// What sets of images share: the statistics of their pixels, and the transforms between bytes and a model's input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::data {

struct PixelStatistics {
  std::vector<float> mean, stddev;  // per channel, of pixels in [0, 1]
};
// Computes mean and standard deviation, per channel, of the field "image" (U8, scaled to [0, 1]) over all samples. The
// sums are exact, so all machines get the same values. Throws Error if the set has no pixels or no such field.
PixelStatistics pixel_statistics(const Dataset& dataset);
// The text of a JSON object with these numbers, for checkpoints (RunData::record); numbers read back are the same bits.
// The second function throws Error at site "data" for another text.
std::string text_of(const PixelStatistics& pixels);
PixelStatistics parse_pixel_statistics(std::string_view text);

struct ImageInput {
  PixelStatistics pixels{};  // one value per channel
  bool augment = false;      // random crops, and flips where `mirrored`
  bool mirrored = false;     // images may be flipped left to right
  std::int64_t resize = 0;   // pixels of the shorter side; 0: as in the data set
  DType floats = DType::F32;
};
// Returns the statistics with one value per channel, where they have one for all.
PixelStatistics per_channel(PixelStatistics pixels, std::int64_t channels);
// Returns the transforms from images of this shape (channels, height, width), U8, to the input of a model.
Transforms image_transforms(const Shape& image, const ImageInput& input);

}  // namespace lockstep::data
