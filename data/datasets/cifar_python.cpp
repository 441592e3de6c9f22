#include "data/datasets/cifar_python.h"

#include "data/datasets/pickle.h"
#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::int64_t kImageSide = 32, kImagePixels = 3 * kImageSide * kImageSide;

void append_file(const CifarFiles& options, const std::filesystem::path& path, const std::string& key,
                 data::Images& images) {
  data::FileSource file(path);
  const PickledDict dict(file.name(), file.read(file.file_size(), "a pickle"));
  const PickledArray pixels = dict.array("data");
  const std::vector<std::int64_t> labels = dict.integers(key);
  const std::vector<std::int64_t> expected{options.records, kImagePixels};
  check(pixels.shape == expected, file.name(), "'data' is an array ({}), expected ({})", joined(pixels.shape, ", "),
        joined(expected, ", "));
  check(std::ssize(labels) == options.records, file.name(), "'{}' has {} labels, expected {}", key, labels.size(),
        options.records);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check(labels[i] >= 0 && labels[i] < options.classes, file.name(), "record {} has label {}, expected 0 to {}", i,
          labels[i], options.classes - 1);
    images.labels.push_back(static_cast<std::int32_t>(labels[i]));
  }
  images.pixels.insert(images.pixels.end(), pixels.elements.begin(), pixels.elements.end());
}

}  // namespace

std::unique_ptr<data::ImageDataset> read_cifar_python(const CifarFiles& files, const std::string& labels) {
  data::Images images{.description = files.description, .shape = {3, kImageSide, kImageSide}, .classes = files.classes};
  for (const auto& path : files.files) append_file(files, path, labels, images);
  return std::make_unique<data::ImageDataset>(std::move(images));
}

}  // namespace lockstep::datasets
