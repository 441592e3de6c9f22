// Measures what a normalisation needs. Samples are cut into blocks by their number alone; a rank, and a thread of it,
// works out whole blocks, and the results of all blocks are combined in their order.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/math.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/channel_walk.h"
#include "lockstep/data/convert_array.h"
#include "lockstep/data/normalisation.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::data {
namespace {

constexpr std::int64_t kMostBlocks = 1024;
constexpr std::size_t kMostNames = 8;  // of channels in a message
constexpr std::string_view kNormalisation = "normalisation";

// The values of one channel: number, mean, sum of squared differences from the mean, and range.
struct ChannelSums {
  double count = 0, mean = 0, squares = 0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();

  void add(const ChannelSums& other) {
    if (other.count == 0) return;
    const double both = count + other.count, difference = other.mean - mean;
    mean += difference * (other.count / both);
    squares += other.squares + difference * difference * (count * other.count / both);
    count = both;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
  bool is_constant() const { return count > 0 && least == most; }
};
static_assert(sizeof(ChannelSums) == 5 * sizeof(double), "sent as five numbers");

// One field that is measured.
struct Measured {
  const NormalisationOptions* options;
  std::size_t field;
  ChannelWalk walk;
  std::size_t first;  // position of its first channel among all channels
};

bool is_measured(const NormalisationOptions& options) {
  return options.scaling == Scaling::MinMax || (options.scaling == Scaling::MeanStd && options.mean.empty());
}

void check_options(const NormalisationOptions& options, const ChannelWalk& walk) {
  check(options.mean.size() == options.stddev.size(), kNormalisation,
        "'{}': {} means and {} standard deviations are given, expected equal numbers", options.field,
        options.mean.size(), options.stddev.size());
  check(options.mean.empty() || options.scaling == Scaling::MeanStd, kNormalisation,
        "'{}': a mean is given, expected the scaling by mean and standard deviation", options.field);
  const auto given = static_cast<std::int64_t>(options.mean.size());
  check(given <= 1 || given == walk.channels, kNormalisation, "'{}': {} means are given for {} channels", options.field,
        given, walk.channels);
}

class Measurement {
 public:
  Measurement(const Dataset& dataset, const std::vector<NormalisationOptions>& options) : dataset_(dataset) {
    for (const NormalisationOptions& one : options) {
      const std::size_t field = find_field(kNormalisation, dataset.fields(), one.field);
      const ChannelWalk walk = channel_walk(one.field, dataset.fields()[field].shape, one.channel_axis);
      check_options(one, walk);
      if (!is_measured(one)) continue;
      check(walk.elements() > 0 && dataset.size() > 0, kNormalisation, "'{}' has no values in {}", one.field,
            dataset.describe());
      measured_.push_back({&one, field, walk, channels_});
      channels_ += static_cast<std::size_t>(walk.channels);
    }
    blocks_ = measured_.empty() ? 0 : std::min(dataset.size(), kMostBlocks);
  }

  std::int64_t blocks() const { return blocks_; }
  std::size_t channels() const { return channels_; }

  // The sums of some blocks, block by block, by `threads` threads.
  std::vector<ChannelSums> measure(Range blocks, int threads) const {
    check(threads >= 1, kNormalisation, "{} threads, expected at least 1", threads);
    std::vector<ChannelSums> sums(static_cast<std::size_t>(blocks.size()) * channels_);
    const auto parts =
        static_cast<std::size_t>(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(blocks.size(), 1)));
    on_threads(parts, [&](std::size_t part) {
      const Range mine = part_of(blocks.size(), static_cast<std::int64_t>(parts), static_cast<std::int64_t>(part));
      for (std::int64_t b = mine.begin; b < mine.end; ++b)
        measure_block(blocks.begin + b, std::span(sums).subspan(static_cast<std::size_t>(b) * channels_, channels_));
    });
    return sums;
  }

  // The entry of a field, from the sums of all blocks in order.
  FieldNormalisation entry(const NormalisationOptions& options, std::span<const ChannelSums> blocks) const {
    FieldNormalisation entry{
        .field = options.field, .log_offset = options.log_offset, .channel_axis = options.channel_axis};
    if (!is_measured(options)) {
      entry.shift = options.scaling == Scaling::None ? std::vector<double>{0} : options.mean;
      entry.scale = options.scaling == Scaling::None ? std::vector<double>{1} : options.stddev;
      return entry;
    }
    const auto& field = *std::ranges::find(measured_, &options, &Measured::options);
    for (std::size_t c = field.first; c < field.first + static_cast<std::size_t>(field.walk.channels); ++c) {
      const ChannelSums all = of_channel(c, blocks);
      const bool range = options.scaling == Scaling::MinMax;
      const double scale = range ? all.most - all.least : std::sqrt(all.squares / all.count);
      entry.shift.push_back(range ? all.least : all.mean);
      entry.scale.push_back(all.is_constant() || !(scale > 0) ? 1.0 : scale);  // rounding may leave a tiny deviation
    }
    return entry;
  }

  // The channels whose values are all equal: "'u' channel 2, 'v'"; empty: there are none.
  std::string constants(std::span<const ChannelSums> blocks) const {
    std::vector<std::string> names;
    for (const Measured& field : measured_) {
      for (std::int64_t c = 0; c < field.walk.channels; ++c) {
        if (!of_channel(field.first + static_cast<std::size_t>(c), blocks).is_constant()) continue;
        const std::string& name = field.options->field;
        names.push_back(field.walk.channels == 1 ? formatted("'{}'", name) : formatted("'{}' channel {}", name, c));
      }
    }
    const std::size_t more = names.size() - std::min(names.size(), kMostNames);
    names.resize(names.size() - more);
    return joined(names, ", ") + (more > 0 ? formatted(" and {} more", more) : "");
  }

 private:
  ChannelSums of_channel(std::size_t channel, std::span<const ChannelSums> blocks) const {
    ChannelSums all;
    for (std::size_t b = 0; b < static_cast<std::size_t>(blocks_); ++b) all.add(blocks[b * channels_ + channel]);
    return all;
  }

  void measure_block(std::int64_t block, std::span<ChannelSums> sums) const {
    SampleBuffers sample(dataset_.fields());
    std::vector<double> values;
    const Range samples = part_of(dataset_.size(), blocks_, block);
    for (std::int64_t index = samples.begin; index < samples.end; ++index) {
      dataset_.read(index, sample.out);
      for (const Measured& field : measured_) {
        take_values(field, sample.out[field.field], index, values);
        for (std::int64_t c = 0; c < field.walk.channels; ++c)
          sums[field.first + static_cast<std::size_t>(c)].add(channel_sums(field.walk, c, values));
      }
    }
  }

  // Writes g(x) of one sample to `values`.
  void take_values(const Measured& field, const std::byte* in, std::int64_t index, std::vector<double>& values) const {
    values.resize(static_cast<std::size_t>(field.walk.elements()));
    convert_array(dataset_.fields()[field.field].dtype, in, DType::F64, reinterpret_cast<std::byte*>(values.data()),
                  field.walk.elements());
    const NormalisationOptions& options = *field.options;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]))
        fail(kNormalisation, "'{}': element {} of {} is {}, expected a finite number", options.field,
             element_name(field, i), dataset_.locate(index), values[i]);
      if (!options.log_offset) continue;
      const double x = values[i] + *options.log_offset;
      if (!(x > 0))
        fail(kNormalisation, "'{}': element {} of {} plus the offset is {}, expected above 0 for log", options.field,
             element_name(field, i), dataset_.locate(index), x);
      values[i] = math::log(x);
    }
  }

  // Element 5 of (2, 3) is "[1, 2]"; of one dimension or none, "5".
  std::string element_name(const Measured& field, std::size_t element) const {
    const Shape& shape = dataset_.fields()[field.field].shape;
    auto rest = static_cast<std::int64_t>(element);
    std::string name;
    for (int axis = shape.rank() - 1; axis > 0; --axis) {
      name = formatted(", {}{}", rest % shape[axis], name);
      rest /= shape[axis];
    }
    return shape.rank() < 2 ? formatted("{}", rest) : formatted("[{}{}]", rest, name);
  }

  // Two passes over the values of one channel in one sample, in their order.
  static ChannelSums channel_sums(const ChannelWalk& walk, std::int64_t channel, const std::vector<double>& values) {
    const auto each = [&](auto one) {
      for (std::int64_t o = 0; o < walk.outer; ++o) {
        const auto first = static_cast<std::size_t>((o * walk.channels + channel) * walk.inner);
        for (std::size_t i = first; i < first + static_cast<std::size_t>(walk.inner); ++i) one(values[i]);
      }
    };
    ChannelSums sums{.count = static_cast<double>(walk.outer * walk.inner)};
    double sum = 0;
    each([&](double value) {
      sum += value;
      sums.least = std::min(sums.least, value);
      sums.most = std::max(sums.most, value);
    });
    sums.mean = sum / sums.count;
    each([&](double value) { sums.squares += (value - sums.mean) * (value - sums.mean); });
    return sums;
  }

  const Dataset& dataset_;
  std::vector<Measured> measured_;
  std::size_t channels_ = 0;
  std::int64_t blocks_ = 0;
};

Normalisation entries_of(const Measurement& measurement, const std::vector<NormalisationOptions>& options,
                         std::span<const ChannelSums> blocks) {
  std::vector<FieldNormalisation> entries;
  for (const NormalisationOptions& one : options) entries.push_back(measurement.entry(one, blocks));
  return Normalisation(std::move(entries));
}

}  // namespace

Normalisation measure_normalisation(const Dataset& dataset, const std::vector<NormalisationOptions>& options,
                                    int threads) {
  const Measurement measurement(dataset, options);
  return entries_of(measurement, options, measurement.measure({0, measurement.blocks()}, threads));
}

Normalisation measure_normalisation(const Dataset& dataset, const std::vector<NormalisationOptions>& options,
                                    const comm::Communicator& ranks, int threads) {
  const Measurement measurement = comm::collectively(ranks, [&] { return Measurement(dataset, options); });
  const std::int64_t blocks = measurement.blocks();
  const auto numbers = static_cast<std::int64_t>(5 * measurement.channels());
  comm::check_same(ranks, "size of the normalisation's measurement",
                   formatted("{} samples, {} channels", dataset.size(), measurement.channels()));
  const std::vector<ChannelSums> mine = comm::collectively(
      ranks, [&] { return measurement.measure(part_of(blocks, ranks.size(), ranks.rank()), threads); });
  std::vector<ChannelSums> all(static_cast<std::size_t>(blocks) * measurement.channels());
  std::vector<std::int64_t> counts;
  for (int r = 0; r < ranks.size(); ++r) counts.push_back(part_of(blocks, ranks.size(), r).size() * numbers);
  ranks.allgatherv({mine.data(), static_cast<std::int64_t>(mine.size()) * 5, comm::Element::F64},
                   {all.data(), blocks * numbers, comm::Element::F64}, counts);
  if (const std::string names = ranks.is_root() ? measurement.constants(all) : ""; !names.empty())
    log()->warn("normalisation: all values in the training samples are equal: {}; a model learns nothing from them",
                names);
  return comm::collectively(ranks, [&] { return entries_of(measurement, options, all); });
}

}  // namespace lockstep::data
