// Which part of an image of any size becomes an image of a fixed size: as torchvision's Resize, CenterCrop and
// RandomResizedCrop choose it.
#pragma once

#include <cstdint>

#include "lockstep/core/random.h"
#include "lockstep/data/images/scale.h"

namespace lockstep::data {

enum class Crop : std::uint8_t {
  Exact,   // every image has the size already; another size is an error
  Whole,   // Resize((height, width)): the whole image, whatever the ratio of its sides
  Centre,  // Resize(shorter_side), then CenterCrop((height, width))
  Random,  // RandomResizedCrop((height, width)): a part of random area and ratio of sides (Szegedy et al. 2015)
};

struct CropOptions {
  Crop crop = Crop::Centre;
  std::int64_t height = 224, width = 224;           // of the result
  std::int64_t shorter_side = 256;                  // Centre: of the scaled image, of which the middle is taken
  double min_area = 0.08, max_area = 1;             // Random: parts of the image's area
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;  // Random: width to height
};

// Throws Error for sizes below 1, a shorter side below the crop's, and empty or negative intervals.
void check_crop(const CropOptions& options);

// Returns the part of an image of `height` x `width` pixels; draws from `random` only for Crop::Random. Throws Error
// for Crop::Exact and an image of another size.
ImagePart choose_part(const CropOptions& options, std::int64_t height, std::int64_t width, RandomStream& random);

}  // namespace lockstep::data
