// A data set of image files: DecodedImages reads and decodes them, and ImageFiles gives their bytes, for example those
// of a folder or of packed records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/images/crop.h"
#include "lockstep/data/images/encoded_image.h"
#include "lockstep/data/images/pixel_cache.h"

namespace lockstep::data {

// One image file and its label.
struct ImageFile {
  std::vector<std::byte> bytes{};
  std::int32_t label = 0;
};

// Labelled image files. The functions are const, and any number of threads may call them at once.
class ImageFiles {
 public:
  virtual ~ImageFiles() = default;
  virtual std::int64_t size() const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;  // labels are positions in it
  virtual std::string describe() const = 0;                         // one line for a log
  // Returns the bytes as they are; throws Error if they cannot be read. `index` is in [0, size()).
  virtual ImageFile read(std::int64_t index) const = 0;
  // The label, where it is known without the file; -1: it is not.
  virtual std::int32_t label(std::int64_t /*index*/) const { return -1; }
  virtual std::string place(std::int64_t index) const = 0;  // file or record, for messages
};

struct DecodeOptions {
  CropOptions crop{};
  int channels = 3;  // 3: RGB; 1: grey, (19595 R + 38470 G + 7471 B) / 65536 as Pillow's mode L
  // A JPEG that is larger than needed is decoded at 1/2, 1/4 or 1/8 of its size where that has at least the result's
  // pixels: faster, and nearly the same pixels. false: always whole, the bits of Pillow and torchvision.
  bool reduce = true;
  ImageLimits limits{};
  // Keep whole images in memory, up to this many bytes, and decode every image whole as without `reduce`: later epochs
  // make their crops of these pixels. 0: none.
  std::size_t cache_bytes = 0;
};

// Fields "image", U8 (channels, crop.height, crop.width), and "label", I32. read(), which has no key, makes the random
// choices of the key (0, 0, index). Of an image, no more is decoded than the crop needs; damage
// elsewhere in the file is not seen, but a file that ends early is always an error.
class DecodedImages : public Dataset {
 public:
  // Takes ownership of the files. Throws Error for invalid options (check_crop()).
  DecodedImages(std::unique_ptr<const ImageFiles> files, DecodeOptions options);

  std::int64_t size() const override { return files_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return static_cast<std::int64_t>(files_->class_names().size()); }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override { return files_->place(index); }
  std::int32_t label(std::int64_t index) const override { return files_->label(index); }
  bool is_random() const override { return options_.crop.crop == Crop::Random; }
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const override;

  const ImageFiles& files() const { return *files_; }
  const DecodeOptions& options() const { return options_; }
  const PixelCache* cache() const { return cache_.get(); }  // null without DecodeOptions::cache_bytes

 private:
  std::shared_ptr<const WholeImage> whole_image(std::int64_t index) const;

  std::unique_ptr<const ImageFiles> files_;
  DecodeOptions options_;
  std::vector<Field> fields_;
  std::unique_ptr<PixelCache> cache_;
};

// Decodes the part of an image file that `options` choose with `random`, to (channels, height, width). Throws Error,
// with `place`, for a file that cannot be decoded.
void decode_image(std::span<const std::byte> bytes, const std::string& place, const DecodeOptions& options,
                  RandomStream& random, std::uint8_t* out);

// The name under which crops draw their random numbers (SampleKey::random()): the same in DecodedImages and in the
// transform RandomResizedCrop, so both choose alike.
inline constexpr std::string_view kCropNumbers = "random resized crop";

}  // namespace lockstep::data
