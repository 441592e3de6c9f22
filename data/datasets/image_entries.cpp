#include "data/datasets/image_entries.h"

#include <memory>
#include <utility>

#include "data/datasets/check_images.h"
#include "data/datasets/image_folder.h"
#include "lockstep/core/error.h"
#include "lockstep/data/cached_dataset.h"
#include "lockstep/data/image_sets.h"
#include "lockstep/data/records/record_reader.h"

namespace lockstep::datasets {
namespace {

using data::DatasetOptions;
using data::RunData;
using data::Split;
using OpenFiles = std::unique_ptr<data::ImageFiles>;

// The bytes of --cache-mb that a set of `samples` of all `total` samples gets.
std::size_t cache_share(const DatasetOptions& o, std::int64_t samples, std::int64_t total) {
  const double bytes = static_cast<double>(o.samples.cache_mb) * 1048576;
  return total > 0 ? static_cast<std::size_t>(bytes * static_cast<double>(samples) / static_cast<double>(total)) : 0;
}

// Decoded files. In memory stay whole images where crops are random, else what became of them.
std::unique_ptr<data::Dataset> decoded(OpenFiles files, data::DecodeOptions decode, std::size_t cache) {
  const bool random = decode.crop.crop == data::Crop::Random;
  if (random) decode.cache_bytes = cache;
  auto images = std::make_unique<data::DecodedImages>(std::move(files), decode);
  if (random || cache == 0) return images;
  return std::make_unique<data::CachedDataset>(std::move(images), cache);
}

RunData decode_both(const DatasetOptions& o, OpenFiles train, OpenFiles eval) {
  const std::int64_t sizes[] = {train->size(), eval->size()}, total = sizes[0] + sizes[1];
  const data::DecodeOptions training = data::decode_options(o, Split::Train, *train);
  const data::DecodeOptions evaluation = data::decode_options(o, Split::Eval, *train);
  RunData data{.labels = {.names = train->class_names()}, .images = {.cropped = true}};
  data.train = decoded(std::move(train), training, cache_share(o, sizes[0], total));
  data.eval = decoded(std::move(eval), evaluation, cache_share(o, sizes[1], total));
  return data;
}

// All images of a folder, for a prediction: the classes are those of the checkpoint.
RunData open_unlabelled(const DatasetOptions& o) {
  const std::vector<std::string> classes = data::recorded_classes(*o.record);
  auto files = std::make_unique<ImageFolder>(list_unlabelled_images(o.dir, classes));
  const data::DecodeOptions decode = data::decode_options(o, Split::Eval, *files);
  RunData data{.labels = {.names = classes}, .images = {.cropped = true}};
  data.train = decoded(std::move(files), decode, 0);
  return data;
}

RunData open_folder(const DatasetOptions& o) {
  const std::filesystem::path folder = split_folder(o.dir, Split::Train);
  if (folder.empty() && o.purpose == data::Purpose::Predict && o.record != nullptr) return open_unlabelled(o);
  check(!folder.empty(), "image folder",
        "{}: no folder train, expected train/CLASS/FILE and val/CLASS/FILE, with a folder for each class",
        o.dir.string());
  ImageList train = list_image_folder(folder), eval = list_image_folder(split_folder(o.dir, Split::Eval));
  check_same_classes(train, eval);
  return decode_both(o, std::make_unique<ImageFolder>(std::move(train)),
                     std::make_unique<ImageFolder>(std::move(eval)));
}

std::unique_ptr<data::Dataset> stored(data::RecordReader records, std::size_t cache) {
  auto set = std::make_unique<data::RecordDataset>(std::move(records));
  if (cache == 0) return set;
  return std::make_unique<data::CachedDataset>(std::move(set), cache);
}

RunData open_records(const DatasetOptions& o) {
  constexpr std::string_view kRecords = "records";
  for (const char* name : {"train.index", "eval.index"}) {
    std::error_code error;
    check(std::filesystem::exists(o.dir / name, error), kRecords,
          "{}: no {}, expected train.index and eval.index, as `lockstep pack --output` writes them", o.dir.string(),
          name);
  }
  data::RecordReader train(o.dir / "train.index"), eval(o.dir / "eval.index");
  const data::RecordLayout &a = train.layout(), &b = eval.layout();
  check(a.image_file == b.image_file && a.class_names == b.class_names && a.classes == b.classes, kRecords,
        "{} has {} classes and {} has {}, expected the same classes and both sets of image files, or of pixels",
        train.path(), a.classes, eval.path(), b.classes);
  if (a.image_file >= 0)
    return decode_both(o, std::make_unique<data::RecordImages>(std::move(train)),
                       std::make_unique<data::RecordImages>(std::move(eval)));
  check(!o.images.full_decode && o.images.channels == 3, "options",
        "--channels and --full-decode are for image files, and {} has pixels", train.path());
  const std::int64_t sizes[] = {train.size(), eval.size()}, total = sizes[0] + sizes[1];
  RunData data{.labels = {.names = a.class_names}};
  data.train = stored(std::move(train), cache_share(o, sizes[0], total));
  data.eval = stored(std::move(eval), cache_share(o, sizes[1], total));
  return data;
}

}  // namespace

data::DatasetEntry folder_entry() {
  return {.name = "folder",
          .description = "JPEG and PNG files train/CLASS/FILE and val/CLASS/FILE in --data-dir",
          .needs_dir = true,
          .takes_images = true,
          .kind = data::DatasetKind::Encoded,
          .open_all = open_folder,
          .prepare = check_image_files,
          .pixels = {.mirrored = true}};
}

data::DatasetEntry records_entry() {
  return {.name = "records",
          .description = "packed records of `lockstep pack` in --data-dir",
          .needs_dir = true,
          .takes_images = true,
          .kind = data::DatasetKind::Encoded,
          .open_all = open_records,
          .pixels = {.mirrored = true}};
}

}  // namespace lockstep::datasets
