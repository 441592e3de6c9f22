#include "lockstep/data/augment/random_erasing.h"

#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::data {

RandomErasing::RandomErasing(RandomErasingOptions options)
    : FieldTransform("random erasing", "image"), options_(options) {
  check(options.probability >= 0 && options.probability <= 1, site(), "probability {}, expected 0 to 1",
        options.probability);
  check(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1, site(),
        "areas from {} to {} of the image, expected 0 < smallest <= largest <= 1", options.min_area, options.max_area);
  check(options.min_ratio > 0 && options.min_ratio <= options.max_ratio && std::isfinite(options.max_ratio), site(),
        "ratios of the sides from {} to {}, expected 0 < smallest <= largest", options.min_ratio, options.max_ratio);
}

Field RandomErasing::changed(const Field& before) const {
  expect_floats(before);
  check(before.shape.rank() == 3, site(), "'image' is {}, expected (channels, height, width)", before.shape.str());
  return before;
}

template <class T>
void RandomErasing::erase(RandomStream& random, const Shape& shape, T* image) const {
  if (random.uniform() >= options_.probability) return;
  constexpr int kTries = 10;  // as torchvision; then the image stays as it is
  const std::int64_t height = shape[1], width = shape[2];
  const double low = math::log(options_.min_ratio), high = math::log(options_.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area =
        static_cast<double>(height) * static_cast<double>(width) * random.uniform(options_.min_area, options_.max_area);
    const double ratio = math::exp(random.uniform(low, high));
    const auto rows = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * ratio)));
    const auto columns = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (rows >= height || columns >= width) continue;
    const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height - rows + 1)));
    const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width - columns + 1)));
    for (std::int64_t c = 0; c < shape[0]; ++c) {
      for (std::int64_t y = top; y < top + rows; ++y) {
        T* const row = image + (c * height + y) * width + left;
        for (std::int64_t x = 0; x < columns; ++x)
          row[x] = static_cast<T>(options_.noise ? random.normal() : options_.value);
      }
    }
    return;
  }
}

void RandomErasing::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  std::memcpy(out, in, before.bytes());
  RandomStream random = key.random("random erasing");
  if (before.dtype == DType::F32) {
    erase(random, before.shape, reinterpret_cast<float*>(out));
  } else {
    erase(random, before.shape, reinterpret_cast<double*>(out));
  }
}

}  // namespace lockstep::data
