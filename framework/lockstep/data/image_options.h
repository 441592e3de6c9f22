// The options of image sets: the size of the model's images, how their pixels are normalised, and the random changes of
// training images. Names as in torchvision's reference scripts and timm, where those have the option.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

enum class AutoAugment : std::uint8_t { None, RandAugment };

// The mean and deviation by which pixels are normalised, where no numbers are given.
enum class PixelSource : std::uint8_t {
  Auto,      // those that the catalogue has for the set; else, of images with three channels, ImageNet's; else Measured
  ImageNet,  // 0.485, 0.456, 0.406 and 0.229, 0.224, 0.225
  Measured,  // of the training images
};

// Random changes of training images, by (seed, epoch, sample).
struct AugmentOptions {
  // With DatasetOptions::augment: parts of the image's area, and ratios of width to height, of crops that are scaled to
  // ImageSetOptions::size; and the probabilities of a flip left to right (-1: 1/2 where the entry allows flips), and
  // top to bottom.
  std::vector<double> crop_scale{0.08, 1}, crop_ratio{3.0 / 4, 4.0 / 3};
  double hflip = -1, vflip = 0;
  std::vector<double>
      color_jitter{};  // brightness, contrast, saturation, hue; one number: of the first three; empty: none
  AutoAugment policy = AutoAugment::None;
  int ra_operations = 2, ra_magnitude = 9;  // of RandAugment; the magnitude is 0 to 30
  double random_erase = 0;                  // probability that a rectangle is erased
  bool erase_noise = false;                 // with normal numbers, in place of 0
  std::int64_t cutout = 0;                  // side of a square that becomes 0, in pixels; 0: none
};

// Mixing of the samples of a batch in pairs (data/batch_mix.h); both alphas 0: none.
struct MixingOptions {
  double mixup_alpha = 0, cutmix_alpha = 0;
  double probability = 1;           // that a pair is mixed
  double switch_probability = 0.5;  // that a mixed pair is cut, where both kinds are on

  bool any() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
};

struct ImageSetOptions {
  // Rows and columns of the model's images, which are cropped and scaled to it; 0: images keep their size, which must
  // be the same for all.
  std::int64_t size = 0;
  // With `size`: pixels of the shorter side of an evaluation image, whose centre is taken; 0: size * 256 / 224.
  std::int64_t eval_resize = 0;
  std::int64_t channels = 3;  // of images in files: 3, or 1 for grey
  // Decode files at their full size, for the pixels of Pillow and torchvision; else large JPEGs at 1/2 to 1/8.
  bool full_decode = false;
  PixelSource source = PixelSource::Auto;
  AugmentOptions augment{};
  MixingOptions mixing{};

  std::int64_t eval_side() const { return eval_resize > 0 ? eval_resize : size * 256 / 224; }
};

}  // namespace lockstep::data
