#include "data/datasets/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {
namespace {

struct Point {
  double x = 0, y = 0;
};
Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(double s, Point a) { return {s * a.x, s * a.y}; }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

using Stroke = std::vector<Point>;  // a smooth curve through its points; corners are where strokes meet
using Glyph = std::vector<Stroke>;

// Ways to write each digit, in a unit square, y downwards.
const std::array<std::vector<Glyph>, 10>& glyphs() {
  static const std::array<std::vector<Glyph>, 10> table{{
      {{{{.5, .07}, {.28, .17}, {.2, .5}, {.28, .83}, {.5, .93}, {.72, .83}, {.8, .5}, {.72, .17}, {.5, .07}}}},
      {{{{.34, .27}, {.55, .08}}, {{.55, .08}, {.55, .92}}},
       {{{.52, .07}, {.5, .93}}},
       {{{.34, .27}, {.55, .08}}, {{.55, .08}, {.55, .92}}, {{.3, .92}, {.8, .92}}}},
      {{{{.22, .28}, {.35, .1}, {.6, .08}, {.77, .26}, {.68, .48}, {.42, .72}, {.2, .92}}, {{.2, .92}, {.82, .92}}},
       {{{.22, .22}, {.5, .07}, {.76, .25}, {.62, .56}, {.3, .9}, {.2, .8}, {.36, .76}, {.8, .92}}}},
      {{{{.22, .16}, {.5, .07}, {.75, .2}, {.68, .4}, {.45, .48}},
        {{.45, .48}, {.72, .55}, {.8, .74}, {.55, .93}, {.2, .84}}},
       {{{.22, .09}, {.76, .09}},
        {{.76, .09}, {.45, .43}},
        {{.45, .43}, {.74, .52}, {.78, .76}, {.52, .93}, {.2, .82}}}},
      {{{{.62, .08}, {.2, .62}}, {{.2, .62}, {.85, .62}}, {{.62, .08}, {.62, .93}}},
       {{{.3, .08}, {.22, .52}}, {{.22, .52}, {.8, .52}}, {{.68, .1}, {.64, .93}}}},
      {{{{.76, .08}, {.28, .08}},
        {{.28, .08}, {.25, .45}},
        {{.25, .45}, {.5, .38}, {.76, .52}, {.76, .76}, {.5, .93}, {.2, .85}}}},
      {{{{.7, .1}, {.42, .25}, {.25, .55}, {.28, .82}, {.52, .93}, {.75, .8}, {.73, .58}, {.5, .48}, {.28, .64}}},
       {{{.5, .06}, {.3, .4}, {.24, .72}, {.45, .93}, {.72, .82}, {.66, .58}, {.4, .56}, {.26, .72}}}},
      {{{{.2, .1}, {.8, .1}}, {{.8, .1}, {.55, .5}, {.42, .93}}},
       {{{.2, .1}, {.8, .1}}, {{.8, .1}, {.55, .5}, {.42, .93}}, {{.35, .5}, {.74, .5}}}},
      {{{{.5, .48},
         {.28, .3},
         {.35, .1},
         {.65, .1},
         {.72, .3},
         {.5, .48},
         {.24, .7},
         {.34, .92},
         {.66, .92},
         {.76, .7},
         {.5, .48}}}},
      {{{{.74, .36}, {.5, .52}, {.27, .42}, {.27, .18}, {.5, .07}, {.73, .18}, {.74, .36}, {.7, .7}, {.55, .93}}},
       {{{.72, .24}, {.5, .07}, {.27, .22}, {.36, .46}, {.62, .44}, {.72, .24}}, {{.72, .24}, {.7, .93}}}},
  }};
  return table;
}

class Canvas {
 public:
  // A segment with round ends, `radius` pixels thick on each side, soft by one pixel; strokes do not add up.
  void segment(Point a, Point b, double radius, double ink) {
    const double reach = radius + 0.5;
    const int x0 = clamp(std::min(a.x, b.x) - reach), x1 = clamp(std::max(a.x, b.x) + reach + 1);
    const int y0 = clamp(std::min(a.y, b.y) - reach), y1 = clamp(std::max(a.y, b.y) + reach + 1);
    const Point along = b - a;
    const double length2 = std::max(dot(along, along), 1e-9);
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) {
        const Point p = Point{x + 0.5, y + 0.5} - a;
        const Point away = p - std::clamp(dot(p, along) / length2, 0.0, 1.0) * along;
        const double distance2 = dot(away, away);
        if (distance2 >= reach * reach) continue;
        const double cover = ink * std::min(1.0, reach - std::sqrt(distance2));
        double& pixel = pixels_[static_cast<std::size_t>(y * kDigitsSide + x)];
        pixel = std::max(pixel, cover);
      }
    }
  }
  // Catmull and Rom 1974: the curve passes through all its points; end points count double.
  void stroke(std::span<const Point> points, double radius, double ink) {
    constexpr int kPieces = 4;
    if (points.size() == 2) return segment(points[0], points[1], radius, ink);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const Point p1 = points[i], p2 = points[i + 1];
      const Point p0 = i > 0 ? points[i - 1] : p1, p3 = i + 2 < points.size() ? points[i + 2] : p2;
      Point from = p1;
      for (int k = 1; k <= kPieces; ++k) {
        const double t = static_cast<double>(k) / kPieces;
        const Point to = 0.5 * (2.0 * p1 + t * (p2 - p0) + t * t * (2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3) +
                                t * t * t * (3.0 * (p1 - p2) + p3 - p0));
        segment(from, to, radius, ink);
        from = to;
      }
    }
  }
  double pixel(std::size_t i) const { return pixels_[i]; }

 private:
  static int clamp(double v) { return static_cast<int>(std::clamp(v, 0.0, static_cast<double>(kDigitsSide))); }
  std::array<double, kDigitsSide * kDigitsSide> pixels_{};
};

// From the glyph's unit square to pixels: bent by a quadratic field, then sheared, scaled, turned and moved.
class Placement {
 public:
  explicit Placement(RandomStream& random) {
    for (double& b : bend_) b = random.uniform(-0.35, 0.35);
    const double scale = random.uniform(16.0, 22.5), aspect = random.uniform(0.75, 1.1);
    const double shear = random.uniform(-0.25, 0.25), half = random.uniform(-0.15, 0.15);  // tan of half the angle
    const double c = (1 - half * half) / (1 + half * half), s = 2 * half / (1 + half * half);
    xx_ = scale * aspect * c;
    xy_ = scale * (shear * c - s);
    yx_ = scale * aspect * s;
    yy_ = scale * (shear * s + c);
    centre_ = {14 + random.uniform(-2.4, 2.4), 14 + random.uniform(-2.4, 2.4)};
  }
  Point operator()(Point p) const {
    const double u = p.x - 0.5, v = p.y - 0.5;
    const double x = u + bend_[0] * u * u + bend_[1] * u * v + bend_[2] * v * v;
    const double y = v + bend_[3] * u * u + bend_[4] * u * v + bend_[5] * v * v;
    return centre_ + Point{xx_ * x + xy_ * y, yx_ * x + yy_ * y};
  }

 private:
  std::array<double, 6> bend_{};
  double xx_ = 0, xy_ = 0, yx_ = 0, yy_ = 0;
  Point centre_;
};

constexpr std::size_t kBytes = kDigitsSide * kDigitsSide;

// The numbers by which sample `index` is drawn; its label comes first.
RandomStream stream_of(std::uint64_t seed, data::Split split, std::int64_t index) {
  const auto key = mix(mix(seed, hash_name("digits")), split == data::Split::Train ? 0 : 1);
  return {key, static_cast<std::uint64_t>(index)};
}
std::int32_t label_from(RandomStream& random) { return static_cast<std::int32_t>(random.below(10)); }

const char* description_of(data::Split split) { return split == data::Split::Train ? "digits train" : "digits eval"; }

// Short strokes that belong to no digit.
void clutter(Canvas& canvas, RandomStream& random) {
  const auto count = random.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Point from{random.uniform(0, kDigitsSide), random.uniform(0, kDigitsSide)};
    const Point by{random.uniform(-5, 5), random.uniform(-5, 5)};
    const double ink = random.uniform(0.3, 0.7), radius = random.uniform(0.3, 0.8);
    canvas.segment(from, from + by, radius, ink);
  }
}

}  // namespace

std::int32_t draw_digit(std::uint64_t seed, data::Split split, std::int64_t index, std::span<std::uint8_t> pixels) {
  RandomStream random = stream_of(seed, split, index);
  const auto label = static_cast<std::size_t>(label_from(random));
  const std::vector<Glyph>& forms = glyphs()[label];
  const Glyph& glyph = forms[static_cast<std::size_t>(random.below(forms.size()))];
  Canvas canvas;
  clutter(canvas, random);
  const Placement place(random);
  const double radius = random.uniform(0.5, 1.5), ink = random.uniform(0.6, 1.0);
  Stroke points;
  for (const Stroke& stroke : glyph) {
    points.clear();
    for (Point p : stroke) points.push_back(place(p));
    canvas.stroke(points, radius, ink);
  }
  const double background = random.uniform(0.0, 40.0), noise = random.uniform(10.0, 50.0);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::uint32_t word = random.next();
    // The sum of two uniform numbers: noise with a triangular density.
    const double grain = static_cast<double>((word & 0xFFFF) + (word >> 16)) * 0x1p-16 - 1.0;
    const double value = background + canvas.pixel(i) * (255.0 - background) + noise * grain;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
  }
  return static_cast<std::int32_t>(label);
}

std::unique_ptr<data::ImageDataset> make_digits(const DigitsOptions& options) {
  check(options.size > 0, "digits", "size {}, expected at least 1", options.size);
  const auto count = static_cast<std::size_t>(options.size);
  data::Images images{.description = description_of(options.split),
                      .shape = {1, kDigitsSide, kDigitsSide},
                      .classes = 10,
                      .pixels = std::vector<std::uint8_t>(count * kBytes),
                      .labels = std::vector<std::int32_t>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<std::uint8_t> pixels(images.pixels.data() + i * kBytes, kBytes);
    images.labels[i] = draw_digit(options.seed, options.split, static_cast<std::int64_t>(i), pixels);
  }
  return std::make_unique<data::ImageDataset>(std::move(images));
}

DigitsDataset::DigitsDataset(const DigitsOptions& options)
    : options_(options), fields_{{"image", {1, kDigitsSide, kDigitsSide}, DType::U8}, {"label", Shape{}, DType::I32}} {
  check(options.size > 0, "digits", "size {}, expected at least 1", options.size);
  pixels_.resize(static_cast<std::size_t>(options.size) * kBytes);
  drawn_ = std::make_unique<std::once_flag[]>(static_cast<std::size_t>((options.size + kBlock - 1) / kBlock));
}

std::string DigitsDataset::describe() const {
  return formatted("{}: {} images {}, {} classes", description_of(options_.split), size(), fields_[0].shape.str(),
                   classes());
}

std::int32_t DigitsDataset::label(std::int64_t index) const {
  RandomStream random = stream_of(options_.seed, options_.split, index);
  return label_from(random);
}

std::span<std::uint8_t> DigitsDataset::pixels(std::int64_t index) const {
  return std::span(pixels_).subspan(static_cast<std::size_t>(index) * kBytes, kBytes);
}

void DigitsDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const std::int64_t block = index / kBlock, end = std::min((block + 1) * kBlock, size());
  std::call_once(drawn_[static_cast<std::size_t>(block)], [&] {
    for (std::int64_t i = block * kBlock; i < end; ++i) draw_digit(options_.seed, options_.split, i, pixels(i));
  });
  std::memcpy(out[0], pixels(index).data(), kBytes);
  const std::int32_t its_label = label(index);
  std::memcpy(out[1], &its_label, sizeof its_label);
}

data::DatasetEntry digits_entry() {
  constexpr std::int64_t kTrainDigits = 12000, kEvalDigits = 2000;
  return {.name = "digits",
          .description = "built in: handwriting-like digits, 12,000 + 2,000",
          .open =
              [](const data::DatasetOptions& options, data::Split split) {
                return std::make_unique<DigitsDataset>(
                    DigitsOptions{.seed = options.seed,
                                  .split = split,
                                  .size = split == data::Split::Train ? kTrainDigits : kEvalDigits});
              },
          .pixels = {.mean = {0.158f}, .stddev = {0.211f}}};
}

}  // namespace lockstep::datasets
