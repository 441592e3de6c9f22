#include "lockstep/data/augment/color_jitter.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/data/augment/color_ops.h"

namespace lockstep::data {

ColorJitter::ColorJitter(ColorJitterOptions options) : FieldTransform("color jitter", "image"), options_(options) {
  for (const double value : {options.brightness, options.contrast, options.saturation})
    check(value >= 0, site(), "a change of {}, expected at least 0", value);
  check(options.hue >= 0 && options.hue <= 0.5, site(), "hue {}, expected 0 to 0.5", options.hue);
}

Field ColorJitter::changed(const Field& before) const {
  expect_bytes(before);
  return before;
}

void ColorJitter::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  std::memcpy(out, in, before.bytes());
  const ImageBytes image{.values = reinterpret_cast<std::uint8_t*>(out),
                         .channels = before.shape[0],
                         .height = before.shape[1],
                         .width = before.shape[2]};
  RandomStream random = key.random("color jitter");
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(random.below(i + 1))]);
  const auto factor = [&](double value) {
    return static_cast<float>(random.uniform(std::max(0.0, 1 - value), 1 + value));
  };
  // Every factor is drawn, also of an option that is 0: so an option changes no factor of another one.
  const float brightness = factor(options_.brightness), contrast = factor(options_.contrast);
  const float saturation = factor(options_.saturation);
  const double hue = random.uniform(-options_.hue, options_.hue);
  for (const int step : order) {
    if (step == 0 && options_.brightness > 0) adjust_brightness(image, brightness);
    if (step == 1 && options_.contrast > 0) adjust_contrast(image, contrast);
    if (step == 2 && options_.saturation > 0) adjust_saturation(image, saturation);
    if (step == 3 && options_.hue > 0) adjust_hue(image, hue);
  }
}

}  // namespace lockstep::data
