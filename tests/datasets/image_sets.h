// Folders and records of images for tests, opened as train_images does.
#pragma once

#include <filesystem>
#include <fstream>
#include <vector>

#include "data/datasets/catalogue.h"
#include "data/datasets/image_folder.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/records/record_writer.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep::datasets {

inline void put_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline data::DatasetOptions folder_options(const std::filesystem::path& dir, std::int64_t size) {
  return {.name = "folder", .dir = dir, .images = {.size = size}, .augment = true};
}

inline data::RunData open_images(const data::DatasetOptions& options, data::Catalogue catalogue = image_catalogue()) {
  data::RunData opened = data::open_data(catalogue, options);
  data::prepare_data(catalogue, options, opened);
  return opened;
}

// The bytes of all fields of `epochs` epochs of training, as a session's loader gives them.
inline std::vector<data::Bytes> training_batches(const data::RunData& run, int epochs = 2, int threads = 0) {
  const std::int64_t size = run.epoch.order ? run.epoch.order->length() : run.train->size();
  data::Loader loader(*run.train,
                      data::DistributedSampler({.size = size, .global_batch = 8, .seed = 3, .order = run.epoch.order}),
                      run.train_transforms, {.threads = threads, .mix = run.epoch.mix});
  std::vector<data::Bytes> all;
  for (std::int64_t step = 0; step < epochs * loader.sampler().steps_per_epoch(); ++step) {
    data::Batch batch = loader.next();
    for (const Tensor& field : batch.fields) {
      const auto* begin = reinterpret_cast<const std::uint8_t*>(field.raw());
      all.emplace_back(begin, begin + field.bytes());
    }
    loader.recycle(std::move(batch));
  }
  return all;
}

inline void pack_both(const std::filesystem::path& root, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  data::pack_images(ImageFolder(list_image_folder(root / "train")), {.folder = to, .name = "train"});
  data::pack_images(ImageFolder(list_image_folder(root / "val")), {.folder = to, .name = "eval"});
}

}  // namespace lockstep::datasets
