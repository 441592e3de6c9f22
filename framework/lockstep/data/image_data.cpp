#include "lockstep/data/image_data.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::data {
PixelStatistics pixel_statistics(const Dataset& dataset) {
  const std::vector<Field>& fields = dataset.fields();
  const std::size_t image = find_field("pixel statistics", fields, "image");
  check(fields[image].dtype == DType::U8 && fields[image].shape.rank() == 3, "pixel statistics",
        "{}: images are {} {}, expected bytes (channels, height, width)", dataset.describe(),
        name_of(fields[image].dtype), fields[image].shape.str());
  const auto channels = static_cast<std::size_t>(fields[image].shape[0]);
  const std::size_t area = fields[image].bytes() / std::max<std::size_t>(1, channels);
  std::vector<std::uint64_t> sum(channels), squares(channels);
  SampleBuffers sample(fields);
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, sample.out);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = c * area; p < (c + 1) * area; ++p) {
        const auto pixel = std::to_integer<std::uint32_t>(sample.memory[image][p]);
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

PixelStatistics per_channel(PixelStatistics pixels, std::int64_t channels) {
  for (std::vector<float>* values : {&pixels.mean, &pixels.stddev}) {
    if (values->size() == 1) values->resize(static_cast<std::size_t>(channels), values->front());
  }
  return pixels;
}

}  // namespace lockstep::data
