#include "data/datasets/cifar.h"

#include "data/datasets/cifar_python.h"
#include "lockstep/core/error.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::int64_t kSide = 32, kPixels = 3 * kSide * kSide;

void append_file(const CifarFiles& options, const std::filesystem::path& path, data::Images& images) {
  data::FileSource file(path);
  const std::int64_t record = options.label_bytes + kPixels;
  const std::string what = formatted("{} records of {} bytes", options.records, record);
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

// One version of a split: the folder of the official archive, and the files in it.
struct Version {
  bool python = false;
  std::string folder;
  std::vector<std::string> files;
};

// Reads the first of `versions` whose first file is in `dir` or in `dir`/folder.
std::unique_ptr<data::ImageDataset> read_version(const std::filesystem::path& dir, CifarFiles options,
                                                 const std::string& labels, const std::vector<Version>& versions) {
  std::string looked;
  for (const auto& [python, folder, files] : versions) {
    for (const auto& candidate : {dir, dir / folder}) {
      if (!std::filesystem::exists(candidate / files.front())) continue;
      for (const std::string& file : files) options.files.push_back(candidate / file);
      return python ? read_cifar_python(options, labels) : read_cifar(options);
    }
    looked += formatted("{}no {} in {} or its {}/", looked.empty() ? "" : ", ", files.front(), dir.string(), folder);
  }
  fail("cifar", "{}", looked);
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
  Version binary{.folder = "cifar-10-batches-bin"}, python{.python = true, .folder = "cifar-10-batches-py"};
  for (int i = 1; train && i <= 5; ++i) {
    binary.files.push_back(formatted("data_batch_{}.bin", i));
    python.files.push_back(formatted("data_batch_{}", i));
  }
  if (!train) {
    binary.files.push_back("test_batch.bin");
    python.files.push_back("test_batch");
  }
  return read_version(dir, {.description = train ? "CIFAR-10 train" : "CIFAR-10 eval"}, "labels", {binary, python});
}

std::unique_ptr<data::ImageDataset> read_cifar100(const std::filesystem::path& dir, data::Split split) {
  const bool train = split == data::Split::Train;
  const std::string file = train ? "train" : "test";
  return read_version(dir,
                      {.records = train ? 50000 : 10000,
                       .label_bytes = 2,
                       .classes = 100,
                       .description = train ? "CIFAR-100 train" : "CIFAR-100 eval"},
                      "fine_labels",
                      {{.folder = "cifar-100-binary", .files = {file + ".bin"}},
                       {.python = true, .folder = "cifar-100-python", .files = {file}}});
}

data::DatasetEntry cifar10_entry() {
  return {
      .name = "cifar10",
      .description = "binary or Python version, in --data-dir",
      .needs_dir = true,
      .open = [](const data::DatasetOptions& options, data::Split split) { return read_cifar10(options.dir, split); },
      .pixels = {.mean = {0.4914f, 0.4822f, 0.4465f}, .stddev = {0.2470f, 0.2435f, 0.2616f}, .mirrored = true},
      .class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
}

data::DatasetEntry cifar100_entry() {
  return {
      .name = "cifar100",
      .description = "binary or Python version, in --data-dir",
      .needs_dir = true,
      .open = [](const data::DatasetOptions& options, data::Split split) { return read_cifar100(options.dir, split); },
      .pixels = {.mean = {0.5071f, 0.4865f, 0.4409f}, .stddev = {0.2673f, 0.2564f, 0.2762f}, .mirrored = true}};
}

}  // namespace lockstep::datasets
