#include "lockstep/data/sample_order.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::data {
namespace {

void shuffle_order(std::vector<std::int64_t>& order, RandomStream& random) {
  for (std::size_t i = order.size(); i-- > 1;)  // Fisher-Yates shuffle (Durstenfeld 1964)
    std::swap(order[i], order[static_cast<std::size_t>(random.below(i + 1))]);
}

}  // namespace

WeightedOrder::WeightedOrder(std::vector<double> weights, std::int64_t length)
    : weights_(std::move(weights)), length_(length == 0 ? static_cast<std::int64_t>(weights_.size()) : length) {
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    check(weights_[i] >= 0 && std::isfinite(weights_[i]), "weighted order",
          "sample {} has weight {}, expected a finite number of at least 0", i, weights_[i]);
    sum += weights_[i];
  }
  check(sum > 0 && std::isfinite(sum), "weighted order",
        "the weights of {} samples sum to {}, expected a finite number above 0", weights_.size(), sum);
  check(length_ > 0, "weighted order", "length {}, expected at least 1", length_);
}

std::vector<std::int64_t> WeightedOrder::indices(std::uint64_t seed, std::int64_t epoch) const {
  RandomStream random(mix(seed, hash_name("weighted order")), static_cast<std::uint64_t>(epoch));
  // A random order before the selection: neighbours would otherwise exclude each other in every epoch.
  std::vector<std::int64_t> all(weights_.size());
  std::iota(all.begin(), all.end(), 0);
  shuffle_order(all, random);
  double total = 0;
  for (const std::int64_t i : all) total += weights_[static_cast<std::size_t>(i)];
  // Points start, start + 1, ... on a line on which each sample has the length of its expected number.
  const double unit = static_cast<double>(length_) / total, start = random.uniform();
  std::vector<std::int64_t> chosen;
  chosen.reserve(static_cast<std::size_t>(length_));
  double sum = 0;
  for (const std::int64_t i : all) {
    sum += weights_[static_cast<std::size_t>(i)];
    while (static_cast<std::int64_t>(chosen.size()) < length_ &&
           static_cast<double>(chosen.size()) + start < sum * unit)
      chosen.push_back(i);
  }
  // Rounding may leave the last point beyond the line's end.
  const auto last =
      std::find_if(all.rbegin(), all.rend(), [&](std::int64_t i) { return weights_[static_cast<std::size_t>(i)] > 0; });
  chosen.resize(static_cast<std::size_t>(length_), *last);
  shuffle_order(chosen, random);
  return chosen;
}

std::vector<double> mixture_weights(const std::vector<std::int64_t>& sizes, const std::vector<double>& weights) {
  check(sizes.size() == weights.size() && !sizes.empty(), "mixture",
        "{} weights for {} data sets, expected one for each of at least one", weights.size(), sizes.size());
  std::vector<double> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    check(weights[i] >= 0 && std::isfinite(weights[i]), "mixture",
          "data set {} has weight {}, expected a finite number of at least 0", i, weights[i]);
    check(sizes[i] > 0 || (sizes[i] == 0 && weights[i] == 0), "mixture",
          "data set {} has {} samples and weight {}, expected samples to take", i, sizes[i], weights[i]);
    all.insert(all.end(), static_cast<std::size_t>(sizes[i]), weights[i] / static_cast<double>(sizes[i]));
  }
  return all;
}

std::vector<double> balanced_weights(const std::vector<std::int32_t>& labels) {
  check(!labels.empty(), "balanced classes", "there are no labels, expected at least one");
  std::map<std::int32_t, std::int64_t> counts;
  for (const std::int32_t label : labels) ++counts[label];
  std::vector<double> weights;
  for (const std::int32_t label : labels) weights.push_back(1 / static_cast<double>(counts[label]));
  return weights;
}

std::vector<std::int32_t> labels_of(const Dataset& dataset, std::string_view field, std::optional<Range> part) {
  const std::vector<Field>& fields = dataset.fields();
  const std::size_t at = find_field("labels", fields, field);
  const DType type = fields[at].dtype;
  check((type == DType::I32 || type == DType::I64 || type == DType::U8) && fields[at].shape.elements() == 1, "labels",
        "field '{}' is {} {}, expected one integer per sample", field, name_of(type), fields[at].shape.str());
  SampleBuffers sample(fields);
  const Range samples = part.value_or(Range{0, dataset.size()});
  std::vector<std::int32_t> labels;
  for (std::int64_t i = samples.begin; i < samples.end; ++i) {
    dataset.read(i, sample.out);
    std::int64_t label = 0;  // bytes of smaller integers come first (little endian)
    if (type == DType::I32) {
      std::int32_t value = 0;
      std::memcpy(&value, sample.out[at], sizeof value);
      label = value;
    } else {
      std::memcpy(&label, sample.out[at], size_of(type));
    }
    check(label >= std::numeric_limits<std::int32_t>::min() && label <= std::numeric_limits<std::int32_t>::max(),
          "labels", "{}: field '{}' is {}, expected an integer of 32 bits", dataset.locate(i), field, label);
    labels.push_back(static_cast<std::int32_t>(label));
  }
  return labels;
}

}  // namespace lockstep::data
