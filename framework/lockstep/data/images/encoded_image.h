// An image file in memory, of which a part can be decoded: JPEG (baseline and progressive; grey, RGB, YCbCr, CMYK,
// YCCK) by libjpeg-turbo, PNG (every colour type and depth, interlaced too) by libpng. The pixels are 8-bit RGB: grey
// becomes three equal channels, of 16 bits the upper 8 count, transparency is dropped, CMYK is converted as Pillow
// does, and neither EXIF's orientation nor a colour profile is applied. One thread at a time uses an object; different
// threads may decode different images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/partition.h"

namespace lockstep::data {

// Rows and columns of an image, in pixels.
struct ImageRegion {
  Range rows{}, columns{};
  bool operator==(const ImageRegion&) const = default;
};

// Decoded pixels of a region: (row, column, channel), 3 channels.
struct RgbPixels {
  ImageRegion region{};
  std::vector<std::uint8_t> values{};
};

struct ImageLimits {
  // An image with more pixels than this is refused: its header may be damaged, or made to exhaust memory.
  std::int64_t pixels = std::int64_t{1} << 27;
};

class EncodedImage {
 public:
  EncodedImage(const EncodedImage&) = delete;
  EncodedImage& operator=(const EncodedImage&) = delete;
  virtual ~EncodedImage() = default;

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  // Returns the largest reduction, of 1, 2, 4 and 8, that is at most `most` and that the format has.
  virtual int reduction(double most) const = 0;
  // Decodes at least `region` of the image reduced by `reduction` (a value of the function above) to
  // ceil(height / reduction) x ceil(width / reduction) pixels, each the mean of its square, up to JPEG's rounding.
  // Only rows and columns near the region are computed; the pixels of the region are those of a whole decoding, what
  // lies around it may differ. Called once. Throws Error for damaged data that it meets.
  virtual RgbPixels decode(const ImageRegion& region, int reduction) = 0;

 protected:
  explicit EncodedImage(std::string place) : place_(std::move(place)) {}

  // Sets the size; throws Error for an image without pixels, or with more than the limit.
  void set_size(std::int64_t height, std::int64_t width, const ImageLimits& limits);
  // Throws Error unless `region` has pixels and lies in the image reduced by `reduction`.
  void check_region(const ImageRegion& region, int reduction) const;

  std::string place_;  // for messages

 private:
  std::int64_t height_ = 0, width_ = 0;
};

// Reads an image's header; `bytes`, the whole file, must outlive the result. `place` names the file or record in
// messages. Throws Error for bytes that are neither JPEG nor PNG, for a file that ends early, and for a header that is
// damaged or above the limits.
std::unique_ptr<EncodedImage> open_image(std::span<const std::byte> bytes, std::string place,
                                         const ImageLimits& limits = {});

}  // namespace lockstep::data
