#include "data/tool/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/data/image_data.h"
#include "lockstep/data/images/decoded_images.h"
#include "lockstep/data/sample_buffers.h"
#include "lockstep/train/report/result_line.h"

namespace lockstep::datasets {
namespace {

using Json = nlohmann::ordered_json;

// The result of reading all samples of a split.
struct Found {
  std::vector<std::int64_t> counts;                           // samples of each class
  std::vector<std::pair<std::int64_t, std::string>> damaged;  // samples that cannot be read, and why
};

// The class of a sample, which is read whole: of an image file, a crop needs but a part.
std::int32_t read_whole(const data::Dataset& set, std::int64_t index, std::size_t label,
                        std::span<std::byte* const> out) {
  const auto* images = dynamic_cast<const data::DecodedImages*>(&set);
  if (images == nullptr || images->options().crop.crop == data::Crop::Exact) {
    set.read(index, out);
    return *reinterpret_cast<const std::int32_t*>(out[label]);
  }
  const data::ImageFile file = images->files().read(index);
  const auto image = data::open_image(file.bytes, set.locate(index), images->options().limits);
  image->decode({.rows = {0, image->height()}, .columns = {0, image->width()}}, 1);
  return file.label;
}

// Reads samples until none is left; `next` is that of all threads.
Found read_samples(const char* name, const data::Dataset& set, std::atomic<std::int64_t>& next) {
  const std::size_t label = data::find_field(name, set.fields(), "label");
  Found found{.counts = std::vector<std::int64_t>(static_cast<std::size_t>(set.classes())), .damaged = {}};
  data::SampleBuffers sample(set.fields());
  for (std::int64_t i = next++; i < set.size(); i = next++) {
    try {
      const std::int32_t value = read_whole(set, i, label, sample.out);
      check(value >= 0 && value < set.classes(), name, "sample {} has label {}, expected 0 to {}", i, value,
            set.classes() - 1);
      ++found.counts[static_cast<std::size_t>(value)];
    } catch (const Error& error) {
      found.damaged.emplace_back(i, error.what());
    }
  }
  return found;
}

// Reads and decodes a split on all cores.
Found read_split(const char* name, const data::Dataset& set) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::future<Found>> parts;
  for (unsigned thread = 0; thread < std::max(1U, std::thread::hardware_concurrency()); ++thread)
    parts.push_back(std::async(std::launch::async, [&] { return read_samples(name, set, next); }));
  Found all{.counts = std::vector<std::int64_t>(static_cast<std::size_t>(set.classes())), .damaged = {}};
  for (std::future<Found>& part : parts) {
    Found found = part.get();
    for (std::size_t c = 0; c < all.counts.size(); ++c) all.counts[c] += found.counts[c];
    std::ranges::move(found.damaged, std::back_inserter(all.damaged));
  }
  std::ranges::sort(all.damaged);
  return all;
}

void print_split(const char* name, const data::Dataset& set, const Found& found) {
  const auto [least, most] = std::ranges::minmax(found.counts);
  fmt::print("{}: {} samples, {} to {} in a class\n", name, set.size(), least, most);
  for (const auto& [index, reason] : found.damaged) fmt::print("{}: cannot be read: {}\n", name, printable(reason));
}

Json json_of(const data::Dataset& set, const Found& found) {
  Json damaged = Json::array();
  for (const auto& [index, reason] : found.damaged) damaged.push_back({{"sample", index}, {"reason", reason}});
  return {{"samples", set.size()}, {"of_classes", found.counts}, {"cannot_be_read", std::move(damaged)}};
}

// Shapes, classes and pixels, which data sets with damaged samples do not have.
void print_whole(const data::RunData& pair, const std::string& name) {
  fmt::print("{}: images {} (channels, rows, columns), {} classes\n", name, pair.image_shape().str(), pair.classes());
  const data::PixelStatistics pixels = data::pixel_statistics(*pair.train);
  fmt::print("pixels of the training set: mean {:.4f}, deviation {:.4f}; normalised by mean {:.4f}, deviation {:.4f}\n",
             fmt::join(pixels.mean, " "), fmt::join(pixels.stddev, " "), fmt::join(pair.images.pixels.mean, " "),
             fmt::join(pair.images.pixels.stddev, " "));
}

void add_whole(const data::RunData& pair, Json& json) {
  const auto json_of = [](const data::PixelStatistics& pixels) -> Json {
    return {{"mean", pixels.mean}, {"deviation", pixels.stddev}};
  };
  json["image"] = pair.image_shape().dims();
  json["classes"] = pair.classes();
  json["pixels"] = json_of(data::pixel_statistics(*pair.train));
  json["normalised_by"] = json_of(pair.images.pixels);
}

}  // namespace

void print_report(data::Catalogue catalogue, const data::DatasetOptions& options, bool as_json) {
  data::RunData pair = data::open_data(catalogue, options);
  const Found training = read_split("training", *pair.train), evaluation = read_split("evaluation", *pair.eval);
  Json json = {{"data_set", options.name},
               {"training", json_of(*pair.train, training)},
               {"evaluation", json_of(*pair.eval, evaluation)}};
  if (!as_json) {
    print_split("training", *pair.train, training);
    print_split("evaluation", *pair.eval, evaluation);
  }
  const bool is_whole = training.damaged.empty() && evaluation.damaged.empty();
  if (is_whole) {
    data::prepare_data(catalogue, options, pair);
    as_json ? add_whole(pair, json) : print_whole(pair, options.name);
  }
  if (as_json) train::print_result(json);
  check(is_whole, "check",
        "{} of {} training and {} of {} evaluation samples cannot be read, expected all: remove or replace their files "
        "(a run with --unreadable replace leaves them out)",
        training.damaged.size(), pair.train->size(), evaluation.damaged.size(), pair.eval->size());
}

}  // namespace lockstep::datasets
