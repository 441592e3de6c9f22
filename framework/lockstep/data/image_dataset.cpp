#include "lockstep/data/image_dataset.h"

#include <fmt/format.h>

#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {

ImageDataset::ImageDataset(Images images)
    : images_(std::move(images)), fields_{{"image", images_.shape, DType::U8}, {"label", Shape{}, DType::I32}} {
  const std::string& site = images_.description;
  check(images_.shape.rank() == 3, site, "image shape {}, expected (channels, height, width)", images_.shape.str());
  const auto expected = static_cast<std::size_t>(images_.shape.elements()) * images_.labels.size();
  check(images_.pixels.size() == expected, site, "{} bytes of pixels for {} labels, expected {}", images_.pixels.size(),
        images_.labels.size(), expected);
  for (std::size_t i = 0; i < images_.labels.size(); ++i) {
    const std::int32_t label = images_.labels[i];
    check(label >= 0 && label < images_.classes, site, "sample {} has label {}, expected 0 to {}", i, label,
          images_.classes - 1);
  }
}

std::string ImageDataset::describe() const {
  return fmt::format("{}: {} images {}, {} classes", images_.description, size(), images_.shape.str(), classes());
}

void ImageDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const std::size_t bytes = fields_[0].bytes(), i = static_cast<std::size_t>(index);
  std::memcpy(out[0], images_.pixels.data() + i * bytes, bytes);
  std::memcpy(out[1], &images_.labels[i], sizeof(std::int32_t));
}

}  // namespace lockstep::data
