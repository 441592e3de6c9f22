// Changes of 8-bit images in memory, for ColorJitter and RandAugment: what Pillow's ImageEnhance and ImageOps do, to
// the bit where that is said. Channels lie one after the other: (channel, row, column), 1 (grey) or 3 (RGB) of them.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

struct ImageBytes {
  std::uint8_t* values = nullptr;
  std::int64_t channels = 3, height = 0, width = 0;

  std::int64_t area() const { return height * width; }
  std::span<std::uint8_t> channel(std::int64_t c) const {
    return {values + c * area(), static_cast<std::size_t>(area())};
  }
};

// Pixels on the line from a plain image (factor 0) through the image itself (factor 1), in f32, cut off to a whole
// number from 0 to 255: ImageEnhance's Brightness (from black), Contrast (from the mean grey), Color (from the image's
// own grey) and Sharpness (from the smoothed image). The bits are Pillow's.
void adjust_brightness(const ImageBytes& image, float factor);
void adjust_contrast(const ImageBytes& image, float factor);
void adjust_saturation(const ImageBytes& image, float factor);  // grey images stay as they are
void adjust_sharpness(const ImageBytes& image, float factor);   // the outermost pixels stay as they are

// Turns the hue by `shift` of the colour circle, -0.5 to 0.5 (Smith, "Color gamut transform pairs" (1978)), rounded to
// the nearest numbers. Pillow rounds hue and saturation to 8 bits in between, so its pixels differ by a few units.
void adjust_hue(const ImageBytes& image, double shift);

// ImageOps' functions, with Pillow's bits.
void posterize(const ImageBytes& image, int bits);      // keeps the upper 1 to 8 bits
void solarize(const ImageBytes& image, int threshold);  // inverts pixels from `threshold` (0 to 256) on
void autocontrast(const ImageBytes& image);             // each channel to 0 to 255
void equalize(const ImageBytes& image);                 // each channel to an even histogram

// Output pixel (y, x) is the nearest input pixel at x' = a (x + 1/2) + b (y + 1/2) + c, y' = d (x + 1/2) + e (y + 1/2)
// + f, black where that lies outside: Image.transform(AFFINE).
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};
void transform_affine(const ImageBytes& image, const Affine& affine);

}  // namespace lockstep::data
