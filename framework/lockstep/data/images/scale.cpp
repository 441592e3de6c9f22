#include "lockstep/data/images/scale.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kScale = "scale";
constexpr int kWeightBits = 22;
constexpr std::int32_t kHalf = std::int32_t{1} << (kWeightBits - 1);

std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, std::int32_t{0}, std::int32_t{255}));
}

// Columns of one row.
void scale_row(const std::uint8_t* in, std::int64_t stride, std::int64_t origin, const ScaleAxis& columns,
               std::uint8_t* out) {
  for (std::int64_t x = 0; x < columns.outputs(); ++x) {
    const std::uint8_t* from = in + (columns.first(x) - origin) * stride;
    const std::int32_t* weights = columns.weights(x);
    const std::int64_t taps = columns.taps(x);
    std::int32_t sum = kHalf;
    for (std::int64_t k = 0; k < taps; ++k) sum += from[k * stride] * weights[k];
    out[x] = to_pixel(sum);
  }
}

}  // namespace

ScaleAxis::ScaleAxis(const AxisPart& part, std::int64_t size, int reduction) {
  const double begin = part.begin / reduction, end = part.end / reduction;
  check(begin >= 0 && begin < end && end <= static_cast<double>(size) && part.total > 0 && part.outputs.begin >= 0 &&
            part.outputs.begin < part.outputs.end && part.outputs.end <= part.total,
        kScale, "pixels [{}, {}) of {} to [{}, {}) of {}, expected parts that are not empty", begin, end, size,
        part.outputs.begin, part.outputs.end, part.total);
  const auto low = static_cast<std::int64_t>(std::floor(begin)), high = static_cast<std::int64_t>(std::ceil(end));
  const double scale = (end - begin) / static_cast<double>(part.total), reach = std::max(scale, 1.0);
  std::vector<double> weights;
  for (std::int64_t i = part.outputs.begin; i < part.outputs.end; ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * scale;
    // NOLINTBEGIN(bugprone-incorrect-roundings): as Pillow rounds
    const auto from = std::max(low, static_cast<std::int64_t>(std::max(0.0, centre - reach + 0.5)));
    const auto to = std::min(high, static_cast<std::int64_t>(centre + reach + 0.5));
    weights.clear();
    double sum = 0;
    for (std::int64_t x = from; x < to; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(x) + 0.5 - centre) / reach)));
      sum += weights.back();
    }
    for (const double w : weights)
      weights_.push_back(static_cast<std::int32_t>(0.5 + w / sum * (std::int32_t{1} << kWeightBits)));
    // NOLINTEND(bugprone-incorrect-roundings)
    first_.push_back(from);
    weight_begin_.push_back(static_cast<std::int64_t>(weights_.size()));
    inputs_ =
        i == part.outputs.begin ? Range{from, to} : Range{std::min(inputs_.begin, from), std::max(inputs_.end, to)};
  }
}

void scale_channel(const ChannelView& in, const ScaleAxis& rows, const ScaleAxis& columns, std::uint8_t* out) {
  const std::int64_t width = columns.outputs();
  const Range needed = rows.inputs();
  const auto contains = [](const Range& whole, const Range& part) {
    return whole.begin <= part.begin && part.end <= whole.end;
  };
  check(contains(in.region.rows, needed) && contains(in.region.columns, columns.inputs()), kScale,
        "the image has rows [{}, {}) and columns [{}, {}), but [{}, {}) and [{}, {}) are needed", in.region.rows.begin,
        in.region.rows.end, in.region.columns.begin, in.region.columns.end, needed.begin, needed.end,
        columns.inputs().begin, columns.inputs().end);
  std::vector<std::uint8_t> narrow(static_cast<std::size_t>(needed.size() * width));
  for (std::int64_t y = needed.begin; y < needed.end; ++y) {
    scale_row(in.values + (y - in.region.rows.begin) * in.row_stride, in.stride, in.region.columns.begin, columns,
              narrow.data() + (y - needed.begin) * width);
  }
  std::vector<std::int32_t> sums(static_cast<std::size_t>(width));
  for (std::int64_t y = 0; y < rows.outputs(); ++y) {
    std::ranges::fill(sums, kHalf);
    for (std::int64_t k = 0; k < rows.taps(y); ++k) {
      const std::uint8_t* from = narrow.data() + (rows.first(y) + k - needed.begin) * width;
      const std::int32_t weight = rows.weights(y)[k];
      for (std::int64_t x = 0; x < width; ++x) sums[static_cast<std::size_t>(x)] += weight * from[x];
    }
    std::ranges::transform(sums, out + y * width, to_pixel);
  }
}

}  // namespace lockstep::data
