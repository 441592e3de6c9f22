// Labelled 8-bit images in memory, as readers of image files and generators make them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct Images {
  std::string description{};
  Shape shape{};  // channels, height, width
  std::int64_t classes = 0;
  std::vector<std::uint8_t> pixels{};  // dense: (sample, channel, row, column)
  std::vector<std::int32_t> labels{};
};

// The images as a data set with fields "image" and "label"; immutable, so any thread may read.
class ImageDataset : public Dataset {
 public:
  // Takes ownership of the arrays. Throws Error if their sizes do not match or a label is outside [0, classes).
  explicit ImageDataset(Images images);

  std::int64_t size() const override { return static_cast<std::int64_t>(images_.labels.size()); }
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return images_.classes; }
  std::string describe() const override;
  std::int32_t label(std::int64_t index) const override { return images_.labels[static_cast<std::size_t>(index)]; }
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  const Images& images() const { return images_; }

 private:
  Images images_;
  std::vector<Field> fields_;
};

}  // namespace lockstep::data
