#include "data/datasets/mnist.h"

#include <fmt/format.h>

#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::uint32_t kImageMagic = 0x803, kLabelMagic = 0x801;

void check_magic(data::FileSource& file, std::uint32_t expected, std::string_view what) {
  const std::uint32_t magic = file.read_be32("magic number");
  check(magic == expected, file.name(), "offset 0: magic number {:#010x}, expected {:#010x} ({})", magic, expected,
        what);
}

std::int64_t read_dimension(data::FileSource& file, std::string_view what) {
  const std::int64_t at = file.offset(), value = file.read_be32(what);
  check(value > 0, file.name(), "offset {}: {} is 0, expected at least 1", at, what);
  return value;
}

// The folder of `candidates` that has `file`, plain or .gz.
std::filesystem::path find_idx(const std::filesystem::path& dir, const std::string& file) {
  for (const auto& folder : {dir, dir / "mnist", dir / "MNIST" / "raw"}) {
    for (const char* ending : {"", ".gz"}) {
      auto path = folder / (file + ending);
      if (std::filesystem::exists(path)) return path;
    }
  }
  fail("mnist", "no {} or {}.gz in {}, its mnist/ or its MNIST/raw/", file, file, dir.string());
}

}  // namespace

std::unique_ptr<data::ImageDataset> read_idx(const IdxFiles& files) {
  data::FileSource image_file(files.images), label_file(files.labels);
  check_magic(image_file, kImageMagic, "IDX, unsigned bytes, three dimensions: images");
  check_magic(label_file, kLabelMagic, "IDX, unsigned bytes, one dimension: labels");
  const std::int64_t count = read_dimension(image_file, "number of images");
  const std::int64_t label_count = read_dimension(label_file, "number of labels");
  check(label_count == count, label_file.name(), "{} labels, but {} has {} images; expected equal numbers", label_count,
        image_file.name(), count);
  const std::int64_t rows = read_dimension(image_file, "number of rows");
  const std::int64_t columns = read_dimension(image_file, "number of columns");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  check(rows <= kMost / columns && rows * columns <= kMost / count, image_file.name(),
        "offset 4: {} images of {} x {} pixels, more than a file can hold", count, rows, columns);
  data::Images images{.description = files.description, .shape = {1, rows, columns}, .classes = files.classes};
  images.pixels = image_file.read(count * rows * columns, fmt::format("{} images of {} x {}", count, rows, columns));
  image_file.expect_end(fmt::format("{} images of {} x {}", count, rows, columns));
  const auto labels = label_file.read(count, fmt::format("{} labels", count));
  label_file.expect_end(fmt::format("{} labels", count));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    check(labels[i] < files.classes, label_file.name(), "offset {}: record {} has label {}, expected 0 to {}", 8 + i, i,
          labels[i], files.classes - 1);
  }
  images.labels.assign(labels.begin(), labels.end());
  return std::make_unique<data::ImageDataset>(std::move(images));
}

std::unique_ptr<data::ImageDataset> read_mnist(const std::filesystem::path& dir, data::Split split) {
  const std::string part = split == data::Split::Train ? "train" : "t10k";
  return read_idx({.images = find_idx(dir, part + "-images-idx3-ubyte"),
                   .labels = find_idx(dir, part + "-labels-idx1-ubyte"),
                   .description = split == data::Split::Train ? "MNIST train" : "MNIST eval"});
}

data::DatasetEntry mnist_entry() {
  return {.name = "mnist",
          .description = "IDX files, plain or .gz, in --data-dir",
          .needs_dir = true,
          .open = [](const data::DatasetOptions& options, data::Split split) { return read_mnist(options.dir, split); },
          .pixels = {.mean = {0.1307f}, .stddev = {0.3081f}}};
}

}  // namespace lockstep::datasets
