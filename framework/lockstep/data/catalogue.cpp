#include "lockstep/data/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kPlace = "options";

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> dataset, std::int64_t limit, std::string_view option) {
  if (limit == 0) return dataset;
  check(limit > 0 && limit <= dataset->size(), option, "{}, expected 0 (all) to {}: {}", limit, dataset->size(),
        dataset->describe());
  return SubsetDataset::first(std::move(dataset), limit);
}

std::vector<float> per_channel(const std::vector<float>& values, std::int64_t channels) {
  return values.size() == 1 ? std::vector<float>(static_cast<std::size_t>(channels), values[0]) : values;
}

}  // namespace

std::string dataset_names(Catalogue catalogue) {
  std::string names;
  for (const DatasetEntry& entry : catalogue) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name) {
  const auto entry = std::ranges::find(catalogue, name, &DatasetEntry::name);
  if (entry == catalogue.end()) fail(kPlace, "--dataset is '{}', expected one of {}", name, dataset_names(catalogue));
  return *entry;
}

void check_dataset(Catalogue catalogue, std::string_view name, const std::filesystem::path& dir) {
  const DatasetEntry& entry = find_dataset(catalogue, name);
  check(!entry.needs_dir || !dir.empty(), kPlace, "--data-dir is missing, expected the folder with the files of {}",
        name);
}

DatasetPair open_datasets(Catalogue catalogue, const DatasetOptions& options) {
  check_dataset(catalogue, options.name, options.dir);
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  DatasetPair pair{.train = entry.open(options, Split::Train), .eval = entry.open(options, Split::Eval)};
  pair.classes = pair.train->classes();
  pair.image_shape = pair.train->fields()[find_field(options.name, pair.train->fields(), "image")].shape;
  check(pair.train->fields() == pair.eval->fields(), options.name, "images are {} for training and {} for evaluation",
        pair.image_shape.str(), pair.eval->fields()[0].shape.str());
  pair.mirrored = entry.mirrored;
  pair.mean = per_channel(entry.mean, pair.image_shape[0]);
  pair.stddev = per_channel(entry.stddev, pair.image_shape[0]);
  pair.train = limited(std::move(pair.train), options.limit_train, "limit-train");
  pair.eval = limited(std::move(pair.eval), options.limit_eval, "limit-eval");
  return pair;
}

}  // namespace lockstep::data
