#include "lockstep/data/augment/color_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace lockstep::data {
namespace {

using Histogram = std::array<std::int64_t, 256>;
using Lookup = std::array<std::uint8_t, 256>;

std::uint8_t blend(std::uint8_t plain, std::uint8_t value, float factor) {
  const int from = plain, to = value;
  const float sum = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(sum, 0.0F, 255.0F));
}

std::uint8_t grey_of(const ImageBytes& image, std::size_t pixel) {
  if (image.channels == 1) return image.values[pixel];
  const auto area = static_cast<std::size_t>(image.area());
  const std::uint32_t r = image.values[pixel], g = image.values[area + pixel], b = image.values[2 * area + pixel];
  return static_cast<std::uint8_t>((19595U * r + 38470U * g + 7471U * b + 0x8000U) >> 16);
}

void look_up(std::span<std::uint8_t> channel, const Lookup& table) {
  for (std::uint8_t& value : channel) value = table[value];
}

template <class Value>
void look_up_all(const ImageBytes& image, const Value& value) {
  Lookup table{};
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value(i));
  for (std::int64_t c = 0; c < image.channels; ++c) look_up(image.channel(c), table);
}

Histogram histogram_of(std::span<const std::uint8_t> channel) {
  Histogram counts{};
  for (const std::uint8_t value : channel) ++counts[value];
  return counts;
}

// The three numbers of a pixel with its hue turned.
std::array<double, 3> turned(double r, double g, double b, double shift) {
  const double high = std::max({r, g, b}), low = std::min({r, g, b}), span = high - low;
  if (span == 0) return {r, g, b};
  double hue = r == high ? (g - b) / span : g == high ? 2 + (b - r) / span : 4 + (r - g) / span;
  hue = hue / 6 + shift;
  hue = 6 * (hue - std::floor(hue));  // [0, 6], where 6 is 0
  const double sector = std::floor(hue), part = hue - sector;
  const double falling = high - span * part, rising = low + span * part;
  switch (static_cast<int>(sector) % 6) {
    case 0:
      return {high, rising, low};
    case 1:
      return {falling, high, low};
    case 2:
      return {low, high, rising};
    case 3:
      return {low, falling, high};
    case 4:
      return {rising, low, high};
    default:
      return {high, low, falling};
  }
}

}  // namespace

void adjust_brightness(const ImageBytes& image, float factor) {
  look_up_all(image, [&](int v) { return blend(0, static_cast<std::uint8_t>(v), factor); });
}

void adjust_contrast(const ImageBytes& image, float factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(image.area()); ++i) sum += grey_of(image, i);
  const double mean = static_cast<double>(sum) / static_cast<double>(image.area());
  const auto plain = static_cast<std::uint8_t>(mean + 0.5);  // NOLINT(bugprone-incorrect-roundings): as Pillow rounds
  look_up_all(image, [&](int v) { return blend(plain, static_cast<std::uint8_t>(v), factor); });
}

void adjust_saturation(const ImageBytes& image, float factor) {
  if (image.channels == 1) return;
  const auto area = static_cast<std::size_t>(image.area());
  for (std::size_t i = 0; i < area; ++i) {
    const std::uint8_t grey = grey_of(image, i);
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& value = image.values[c * area + i];
      value = blend(grey, value, factor);
    }
  }
}

void adjust_sharpness(const ImageBytes& image, float factor) {
  const std::int64_t height = image.height, width = image.width;
  std::vector<std::uint8_t> before(static_cast<std::size_t>(image.area()));
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::span<std::uint8_t> channel = image.channel(c);
    std::ranges::copy(channel, before.begin());
    for (std::int64_t y = 1; y + 1 < height; ++y) {
      for (std::int64_t x = 1; x + 1 < width; ++x) {
        const std::uint8_t* at = before.data() + y * width + x;
        int sum = 4 * at[0];
        for (const std::int64_t row : {-width, std::int64_t{0}, width}) sum += at[row - 1] + at[row] + at[row + 1];
        const auto smooth = static_cast<std::uint8_t>((2 * sum + 13) / 26);  // the weights sum to 13
        channel[static_cast<std::size_t>(y * width + x)] = blend(smooth, at[0], factor);
      }
    }
  }
}

void adjust_hue(const ImageBytes& image, double shift) {
  if (image.channels == 1) return;
  const auto area = static_cast<std::size_t>(image.area());
  std::uint8_t *red = image.values, *green = red + area, *blue = green + area;
  for (std::size_t i = 0; i < area; ++i) {
    const std::array<double, 3> rgb = turned(red[i], green[i], blue[i], shift);
    red[i] = static_cast<std::uint8_t>(std::lrint(rgb[0]));
    green[i] = static_cast<std::uint8_t>(std::lrint(rgb[1]));
    blue[i] = static_cast<std::uint8_t>(std::lrint(rgb[2]));
  }
}

void posterize(const ImageBytes& image, int bits) {
  const int mask = 0xFF & ~((1 << (8 - bits)) - 1);
  look_up_all(image, [&](int v) { return v & mask; });
}

void solarize(const ImageBytes& image, int threshold) {
  look_up_all(image, [&](int v) { return v < threshold ? v : 255 - v; });
}

void autocontrast(const ImageBytes& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::span<std::uint8_t> channel = image.channel(c);
    const auto [low, high] = std::ranges::minmax(channel);
    if (low == high) continue;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    Lookup table{};
    for (int i = 0; i < 256; ++i)
      table[static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(std::clamp(static_cast<int>(i * scale + offset), 0, 255));
    look_up(channel, table);
  }
}

void equalize(const ImageBytes& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const std::span<std::uint8_t> channel = image.channel(c);
    const Histogram counts = histogram_of(channel);
    std::size_t last = 255;
    while (counts[last] == 0) --last;
    const std::int64_t step = (image.area() - counts[last]) / 255;
    if (step == 0) continue;
    Lookup table{};
    std::int64_t below = step / 2;
    for (std::size_t i = 0; i < 256; ++i) {
      table[i] = static_cast<std::uint8_t>(std::min<std::int64_t>(below / step, 255));
      below += counts[i];
    }
    look_up(channel, table);
  }
}

void transform_affine(const ImageBytes& image, const Affine& m) {
  const std::int64_t height = image.height, width = image.width;
  const auto area = static_cast<std::size_t>(image.area());
  const std::vector<std::uint8_t> before(image.values, image.values + image.channels * image.area());
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const double at_x = static_cast<double>(x) + 0.5, at_y = static_cast<double>(y) + 0.5;
      const double from_x = std::floor(m.a * at_x + m.b * at_y + m.c);
      const double from_y = std::floor(m.d * at_x + m.e * at_y + m.f);
      const bool inside =
          from_x >= 0 && from_x < static_cast<double>(width) && from_y >= 0 && from_y < static_cast<double>(height);
      const std::int64_t from =
          inside ? static_cast<std::int64_t>(from_y) * width + static_cast<std::int64_t>(from_x) : 0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(image.channels); ++c) {
        image.values[c * area + static_cast<std::size_t>(y * width + x)] =
            inside ? before[c * area + static_cast<std::size_t>(from)] : std::uint8_t{0};
      }
    }
  }
}

}  // namespace lockstep::data
