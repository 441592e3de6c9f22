#include "data/tool/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/image_data.h"

namespace lockstep::datasets {
namespace {

void print_split(const char* name, const data::Dataset& set) {
  const std::size_t label = data::find_field(name, set.fields(), "label");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(set.classes()));
  std::vector<std::vector<std::byte>> sample;
  std::vector<std::byte*> out;
  for (const data::Field& field : set.fields()) out.push_back(sample.emplace_back(field.bytes()).data());
  for (std::int64_t i = 0; i < set.size(); ++i) {
    set.read(i, out);
    const std::int32_t value = *reinterpret_cast<const std::int32_t*>(out[label]);
    check(value >= 0 && value < set.classes(), name, "sample {} has label {}, expected 0 to {}", i, value,
          set.classes() - 1);
    ++counts[static_cast<std::size_t>(value)];
  }
  const auto [least, most] = std::ranges::minmax(counts);
  fmt::print("{}: {} samples, {} to {} in a class\n", name, set.size(), least, most);
}

}  // namespace

void print_report(data::Catalogue catalogue, const data::DatasetOptions& options) {
  data::RunData pair = data::open_data(catalogue, options);
  data::prepare_data(catalogue, options, pair);
  fmt::print("{}: images {} (channels, rows, columns), {} classes\n", options.name, pair.image_shape().str(),
             pair.classes());
  print_split("training", *pair.train);
  print_split("evaluation", *pair.eval);
  const data::PixelStatistics pixels = data::pixel_statistics(*pair.train);
  fmt::print("pixels of the training set: mean {:.4f}, deviation {:.4f}; normalised by mean {:.4f}, deviation {:.4f}\n",
             fmt::join(pixels.mean, " "), fmt::join(pixels.stddev, " "), fmt::join(pair.images.pixels.mean, " "),
             fmt::join(pair.images.pixels.stddev, " "));
}

}  // namespace lockstep::datasets
