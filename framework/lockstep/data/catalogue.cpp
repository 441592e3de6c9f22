#include "lockstep/data/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/image_data.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSite = "options";

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> dataset, std::int64_t limit, std::string_view option) {
  if (limit == 0) return dataset;
  check(limit > 0 && limit <= dataset->size(), option, "is {}, expected 0 (all) to {}, the size of {}", limit,
        dataset->size(), dataset->describe());
  return SubsetDataset::first(std::move(dataset), limit);
}

}  // namespace

std::string dataset_names(Catalogue catalogue) {
  std::string names;
  for (const DatasetEntry& entry : catalogue) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name) {
  const auto entry = std::ranges::find(catalogue, name, &DatasetEntry::name);
  if (entry == catalogue.end()) fail(kSite, "--dataset is '{}', expected one of {}", name, dataset_names(catalogue));
  return *entry;
}

void check_dataset(Catalogue catalogue, const DatasetOptions& options) {
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  if (entry.check_options) entry.check_options(options);
  check(
      !entry.needs_dir || !options.dir.empty(), kSite,
      "--data-dir is missing, expected the folder with the files of {}, in this option or in LOCKSTEP_DATA_DIR (which "
      "mpirun takes to other hosts with -x LOCKSTEP_DATA_DIR)",
      options.name);
}

namespace {

bool is_image(const Field& field) {
  return field.name == "image" && field.dtype == DType::U8 && field.shape.rank() == 3;
}

// Sets with images get their transforms here; other sets are used as they are.
void add_image_transforms(RunData& data, const DatasetEntry& entry, const DatasetOptions& options) {
  const std::vector<Field>& fields = data.train->fields();
  const auto image = std::ranges::find_if(fields, is_image);
  if (image == fields.end()) {
    check(!options.augment && options.resize == 0, kSite, "--augment and --resize are for images, and {} has none",
          entry.name);
    return;
  }
  const PixelStatistics pixels = !entry.mean.empty() ? PixelStatistics{.mean = entry.mean, .stddev = entry.stddev}
                                 : options.record == nullptr ? pixel_statistics(*data.train)
                                                             : parse_pixel_statistics(*options.record);
  if (entry.mean.empty()) data.record = text_of(pixels);
  data.pixels = per_channel(pixels, image->shape[0]);
  ImageInput input{
      .pixels = data.pixels, .mirrored = entry.mirrored, .resize = options.resize, .floats = options.floats};
  data.eval_transforms = image_transforms(image->shape, input);
  input.augment = options.augment;
  data.train_transforms = image_transforms(image->shape, input);
}

}  // namespace

RunData open_data(Catalogue catalogue, const DatasetOptions& options) {
  check_dataset(catalogue, options);
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  RunData data;
  if (entry.open_all) {
    data = entry.open_all(options);
  } else {
    data.train = entry.open(options, Split::Train);
    data.eval = entry.open(options, Split::Eval);
    check(data.train->fields() == data.eval->fields(), options.name,
          "samples are {} for training and {} for evaluation", data.train->describe(), data.eval->describe());
    add_image_transforms(data, entry, options);
  }
  data.train = limited(std::move(data.train), options.limit_train, "limit-train");
  if (data.eval) data.eval = limited(std::move(data.eval), options.limit_eval, "limit-eval");
  data.check();
  return data;
}

void prepare_data(Catalogue catalogue, const DatasetOptions& options, RunData& data, const comm::Communicator* comm) {
  if (const DatasetEntry& entry = find_dataset(catalogue, options.name); entry.prepare) {
    entry.prepare(data, options, comm);
  }
  convert_floats(data, options.floats);
  data.check();
}

}  // namespace lockstep::data
