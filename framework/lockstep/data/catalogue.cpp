#include "lockstep/data/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kSite = "options";

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> dataset, std::int64_t limit, std::string_view option) {
  if (limit == 0) return dataset;
  check(limit > 0 && limit <= dataset->size(), option, "is {}, expected 0 (all) to {}, the size of {}", limit,
        dataset->size(), dataset->describe());
  return SubsetDataset::first(std::move(dataset), limit);
}

std::vector<float> per_channel(const std::vector<float>& values, std::int64_t channels) {
  return values.size() == 1 ? std::vector<float>(static_cast<std::size_t>(channels), values[0]) : values;
}

}  // namespace

PixelStatistics pixel_statistics(const Dataset& dataset) {
  const std::vector<Field>& fields = dataset.fields();
  const std::size_t image = find_field("pixel statistics", fields, "image");
  check(fields[image].dtype == DType::U8 && fields[image].shape.rank() == 3, "pixel statistics",
        "{}: images are {} {}, expected bytes (channels, height, width)", dataset.describe(),
        name_of(fields[image].dtype), fields[image].shape.str());
  const auto channels = static_cast<std::size_t>(fields[image].shape[0]);
  const std::size_t area = fields[image].bytes() / std::max<std::size_t>(1, channels);
  std::vector<std::uint64_t> sum(channels), squares(channels);
  std::vector<std::vector<std::byte>> sample;
  std::vector<std::byte*> out;
  for (const Field& field : fields) out.push_back(sample.emplace_back(field.bytes()).data());
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, out);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = c * area; p < (c + 1) * area; ++p) {
        const auto pixel = std::to_integer<std::uint32_t>(sample[image][p]);
        sum[c] += pixel;
        squares[c] += pixel * pixel;
      }
    }
  }
  const double count = static_cast<double>(dataset.size()) * static_cast<double>(area);
  check(count > 0, "pixel statistics", "{}: the data set has no pixels, expected at least one", dataset.describe());
  PixelStatistics result;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = static_cast<double>(sum[c]) / count;
    const double variance = std::max(0.0, static_cast<double>(squares[c]) / count - mean * mean);
    // If all pixels are equal, they become 0 for any divisor.
    result.mean.push_back(static_cast<float>(mean / 255));
    result.stddev.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance) / 255) : 1.0F);
  }
  return result;
}

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

void check_dataset(Catalogue catalogue, std::string_view name, const std::filesystem::path& dir) {
  const DatasetEntry& entry = find_dataset(catalogue, name);
  check(
      !entry.needs_dir || !dir.empty(), kSite,
      "--data-dir is missing, expected the folder with the files of {}, in this option or in LOCKSTEP_DATA_DIR (which "
      "mpirun takes to other hosts with -x LOCKSTEP_DATA_DIR)",
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
  const PixelStatistics pixels =
      entry.mean.empty() ? pixel_statistics(*pair.train) : PixelStatistics{.mean = entry.mean, .stddev = entry.stddev};
  pair.mean = per_channel(pixels.mean, pair.image_shape[0]);
  pair.stddev = per_channel(pixels.stddev, pair.image_shape[0]);
  pair.train = limited(std::move(pair.train), options.limit_train, "limit-train");
  pair.eval = limited(std::move(pair.eval), options.limit_eval, "limit-eval");
  return pair;
}

}  // namespace lockstep::data
