#include "data/datasets/cifar.h"

#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::int64_t kSide = 32, kPixels = 3 * kSide * kSide;

void append_file(const CifarFiles& options, const std::filesystem::path& path, data::Images& images) {
  data::FileSource file(path);
  const std::int64_t record = options.label_bytes + kPixels;
  const std::string what = fmt::format("{} records of {} bytes", options.records, record);
  const auto bytes = file.read(options.records * record, what);
  file.expect_end(what);
  for (std::int64_t i = 0; i < options.records; ++i) {
    const std::int64_t at = i * record + options.label_bytes - 1;
    const std::uint8_t label = bytes[static_cast<std::size_t>(at)];
    check(label < options.classes, file.name(), "offset {}: record {} has label {}, expected 0 to {}", at, i, label,
          options.classes - 1);
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), bytes.begin() + at + 1, bytes.begin() + at + 1 + kPixels);
  }
}

// `dir` itself if it has `file`, else its folder of the official archive.
std::filesystem::path find_folder(const std::filesystem::path& dir, const std::string& archive,
                                  const std::string& file) {
  for (const auto& folder : {dir, dir / archive}) {
    if (std::filesystem::exists(folder / file)) return folder;
  }
  fail("cifar", "no {} in {} or its {}/", file, dir.string(), archive);
}

}  // namespace

std::unique_ptr<data::ImageDataset> read_cifar(const CifarFiles& options) {
  check(!options.files.empty() && options.records > 0 && options.label_bytes > 0, options.description,
        "{} files, {} records each, {} label bytes: expected at least one of each", options.files.size(),
        options.records, options.label_bytes);
  data::Images images{.description = options.description, .shape = {3, kSide, kSide}, .classes = options.classes};
  const auto total = static_cast<std::size_t>(options.records) * options.files.size();
  images.pixels.reserve(total * kPixels);
  images.labels.reserve(total);
  for (const auto& path : options.files) append_file(options, path, images);
  return std::make_unique<data::ImageDataset>(std::move(images));
}

std::unique_ptr<data::ImageDataset> read_cifar10(const std::filesystem::path& dir, data::Split split) {
  const bool train = split == data::Split::Train;
  const auto folder = find_folder(dir, "cifar-10-batches-bin", train ? "data_batch_1.bin" : "test_batch.bin");
  CifarFiles options{.description = train ? "CIFAR-10 train" : "CIFAR-10 eval"};
  if (train) {
    for (int i = 1; i <= 5; ++i) options.files.push_back(folder / fmt::format("data_batch_{}.bin", i));
  } else {
    options.files.push_back(folder / "test_batch.bin");
  }
  return read_cifar(options);
}

std::unique_ptr<data::ImageDataset> read_cifar100(const std::filesystem::path& dir, data::Split split) {
  const bool train = split == data::Split::Train;
  const std::string file = train ? "train.bin" : "test.bin";
  return read_cifar({.files = {find_folder(dir, "cifar-100-binary", file) / file},
                     .records = train ? 50000 : 10000,
                     .label_bytes = 2,
                     .classes = 100,
                     .description = train ? "CIFAR-100 train" : "CIFAR-100 eval"});
}

data::DatasetEntry cifar10_entry() {
  return {
      .name = "cifar10",
      .description = "binary version, in --data-dir",
      .needs_dir = true,
      .open = [](const data::DatasetOptions& options, data::Split split) { return read_cifar10(options.dir, split); },
      .mean = {0.4914f, 0.4822f, 0.4465f},
      .stddev = {0.2470f, 0.2435f, 0.2616f},
      .mirrored = true};
}

data::DatasetEntry cifar100_entry() {
  return {
      .name = "cifar100",
      .description = "binary version, in --data-dir",
      .needs_dir = true,
      .open = [](const data::DatasetOptions& options, data::Split split) { return read_cifar100(options.dir, split); },
      .mean = {0.5071f, 0.4865f, 0.4409f},
      .stddev = {0.2673f, 0.2564f, 0.2762f},
      .mirrored = true};
}

}  // namespace lockstep::datasets
