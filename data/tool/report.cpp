#include "data/tool/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/data/image_data.h"
#include "lockstep/data/images/decoded_images.h"

namespace lockstep::datasets {
namespace {

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
  std::vector<std::vector<std::byte>> sample;
  std::vector<std::byte*> out;
  for (const data::Field& field : set.fields()) out.push_back(sample.emplace_back(field.bytes()).data());
  for (std::int64_t i = next++; i < set.size(); i = next++) {
    try {
      const std::int32_t value = read_whole(set, i, label, out);
      check(value >= 0 && value < set.classes(), name, "sample {} has label {}, expected 0 to {}", i, value,
            set.classes() - 1);
      ++found.counts[static_cast<std::size_t>(value)];
    } catch (const Error& error) {
      found.damaged.emplace_back(i, error.what());
    }
  }
  return found;
}

// Reads and decodes a split on all cores. Returns the number of samples that cannot be read, of which it prints a line
// each.
std::int64_t print_split(const char* name, const data::Dataset& set) {
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
  const auto [least, most] = std::ranges::minmax(all.counts);
  fmt::print("{}: {} samples, {} to {} in a class\n", name, set.size(), least, most);
  for (const auto& [index, reason] : all.damaged) fmt::print("{}: cannot be read: {}\n", name, printable(reason));
  return std::ssize(all.damaged);
}

}  // namespace

void print_report(data::Catalogue catalogue, const data::DatasetOptions& options) {
  data::RunData pair = data::open_data(catalogue, options);
  const std::int64_t training = print_split("training", *pair.train),
                     evaluation = print_split("evaluation", *pair.eval);
  check(training + evaluation == 0, "check",
        "{} of {} training and {} of {} evaluation samples cannot be read, expected all: remove or replace their files "
        "(a run with --unreadable replace leaves them out)",
        training, pair.train->size(), evaluation, pair.eval->size());
  data::prepare_data(catalogue, options, pair);
  fmt::print("{}: images {} (channels, rows, columns), {} classes\n", options.name, pair.image_shape().str(),
             pair.classes());
  const data::PixelStatistics pixels = data::pixel_statistics(*pair.train);
  fmt::print("pixels of the training set: mean {:.4f}, deviation {:.4f}; normalised by mean {:.4f}, deviation {:.4f}\n",
             fmt::join(pixels.mean, " "), fmt::join(pixels.stddev, " "), fmt::join(pair.images.pixels.mean, " "),
             fmt::join(pair.images.pixels.stddev, " "));
}

}  // namespace lockstep::datasets
