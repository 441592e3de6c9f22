#include "data/tool/convert.h"

#include <algorithm>
#include <array>
#include <vector>

#include "data/tool/output_file.h"
#include "lockstep/core/error.h"
#include "lockstep/data/npy_format.h"

namespace lockstep::datasets {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Calls take(pixels, label) for samples first to first + count, in order.
template <class Take>
void each_sample(const data::Dataset& set, std::int64_t first, std::int64_t count, Take take) {
  const std::size_t image = data::find_field("convert", set.fields(), "image");
  const std::size_t label = data::find_field("convert", set.fields(), "label");
  check(set.fields()[image].dtype == DType::U8 && set.fields()[label].dtype == DType::I32 && set.fields().size() == 2,
        "convert", "{}: expected images of bytes and one label", set.describe());
  Bytes pixels(set.fields()[image].bytes());
  std::int32_t value = 0;
  std::array<std::byte*, 2> out{};
  out[image] = reinterpret_cast<std::byte*>(pixels.data());
  out[label] = reinterpret_cast<std::byte*>(&value);
  for (std::int64_t i = first; i < first + count; ++i) {
    set.read(i, out);
    take(pixels, value);
  }
}

void put_big_endian(Bytes& bytes, std::int64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

Bytes npy_header(DType type, const Shape& shape) {
  const std::string start = data::npy_start("convert", "the array", type, shape.dims());
  return {start.begin(), start.end()};
}

void write_npy_split(const data::Dataset& set, const Shape& image, const std::filesystem::path& folder,
                     const std::string& split) {
  OutputFile images(folder / (split + "_images.npy")), labels(folder / (split + "_labels.npy"));
  images.write(npy_header(DType::U8, image.batched(set.size())));
  labels.write(npy_header(DType::I32, {set.size()}));
  each_sample(set, 0, set.size(), [&](const Bytes& pixels, std::int32_t label) {
    images.write(pixels);
    Bytes little;
    for (int shift = 0; shift < 32; shift += 8) little.push_back(static_cast<std::uint8_t>(label >> shift));
    labels.write(little);
  });
  images.commit();
  labels.commit();
}

void write_npy(const data::RunData& pair, const std::filesystem::path& folder) {
  write_npy_split(*pair.train, pair.image_shape(), folder, "train");
  write_npy_split(*pair.eval, pair.image_shape(), folder, "eval");
}

void write_idx_split(const data::Dataset& set, const Shape& image, const std::filesystem::path& folder,
                     const std::string& part) {
  constexpr std::int64_t kMost = 0xFFFFFFFF;
  check(set.size() <= kMost && image[1] <= kMost && image[2] <= kMost, "convert", "{}: idx holds sizes up to {}",
        set.describe(), kMost);
  OutputFile images(folder / (part + "-images-idx3-ubyte")), labels(folder / (part + "-labels-idx1-ubyte"));
  Bytes header;
  for (const std::int64_t v : {std::int64_t{0x803}, set.size(), image[1], image[2]}) put_big_endian(header, v);
  images.write(header);
  header.clear();
  for (const std::int64_t v : {std::int64_t{0x801}, set.size()}) put_big_endian(header, v);
  labels.write(header);
  each_sample(set, 0, set.size(), [&](const Bytes& pixels, std::int32_t label) {
    images.write(pixels);
    labels.write(std::array{static_cast<std::uint8_t>(label)});
  });
  images.commit();
  labels.commit();
}

void write_idx(const data::RunData& pair, const std::filesystem::path& folder) {
  check(pair.image_shape()[0] == 1, "convert", "images have {} channels, idx holds 1", pair.image_shape()[0]);
  check(pair.classes() <= 10, "convert", "{} classes, the reader of idx expects at most 10", pair.classes());
  write_idx_split(*pair.train, pair.image_shape(), folder, "train");
  write_idx_split(*pair.eval, pair.image_shape(), folder, "t10k");
}

void write_cifar10(const data::RunData& pair, const std::filesystem::path& folder) {
  constexpr std::int64_t kRecords = 10000, kBatches = 5;
  check(pair.image_shape() == Shape({3, 32, 32}) && pair.classes() <= 10, "convert",
        "images are {} of {} classes, cifar10 holds (3, 32, 32) of at most 10", pair.image_shape().str(),
        pair.classes());
  check(pair.train->size() == kBatches * kRecords && pair.eval->size() == kRecords, "convert",
        "{} and {} samples, cifar10 has {} and {}", pair.train->size(), pair.eval->size(), kBatches * kRecords,
        kRecords);
  const auto write = [&](const data::Dataset& set, std::int64_t first, const std::string& name) {
    OutputFile file(folder / name);
    each_sample(set, first, kRecords, [&](const Bytes& pixels, std::int32_t label) {
      file.write(std::array{static_cast<std::uint8_t>(label)});
      file.write(pixels);
    });
    file.commit();
  };
  for (std::int64_t i = 0; i < kBatches; ++i) write(*pair.train, i * kRecords, formatted("data_batch_{}.bin", i + 1));
  write(*pair.eval, 0, "test_batch.bin");
}

}  // namespace

std::span<const Format> formats() {
  static constexpr std::array<Format, 3> table{{
      {"npy", "train_images.npy, train_labels.npy, eval_images.npy, eval_labels.npy", write_npy},
      {"idx", "train-images-idx3-ubyte, ... as MNIST", write_idx},
      {"cifar10", "data_batch_1.bin to data_batch_5.bin, test_batch.bin", write_cifar10},
  }};
  return table;
}

const Format& find_format(std::string_view name) {
  const auto found = std::ranges::find(formats(), name, &Format::name);
  if (found == formats().end()) {
    std::vector<std::string_view> names;
    for (const Format& format : formats()) names.push_back(format.name);
    fail("convert", "--to is '{}', expected one of {}", name, joined(names, ", "));
  }
  return *found;
}

}  // namespace lockstep::datasets
