#include "models/zoo/fno.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/spectral_product.h"

namespace lockstep::models {
namespace {

constexpr std::int64_t kProjected = 128;  // channels before the last layer

// The number of frequencies that are kept per axis: an axis of n points has n/2 positive ones.
Shape kept_modes(const Shape& sizes, std::int64_t modes) {
  std::vector<std::int64_t> kept;
  for (int i = 0; i < sizes.rank(); ++i) kept.push_back(std::max<std::int64_t>(1, std::min(modes, sizes[i] / 2)));
  return Shape(std::move(kept));
}

// (channels, channels, 2 m1, ..., md, 2)
Shape weight_shape(std::int64_t channels, const Shape& modes) {
  std::vector<std::int64_t> shape{channels, channels};
  for (int i = 0; i < modes.rank(); ++i) shape.push_back(i + 1 < modes.rank() ? 2 * modes[i] : modes[i]);
  shape.push_back(2);
  return Shape(std::move(shape));
}

// (1, axes, sizes): channel a of a point is its coordinate along axis a.
Parameter coordinates(const Shape& sizes) {
  std::vector<std::int64_t> shape{1, sizes.rank()};
  for (int i = 0; i < sizes.rank(); ++i) shape.push_back(sizes[i]);
  const auto fill = [sizes](const Shape&, std::span<double> values, RandomStream&) {
    const std::int64_t points = sizes.elements();
    for (int axis = 0; axis < sizes.rank(); ++axis) {
      std::int64_t inner = 1;
      for (int i = axis + 1; i < sizes.rank(); ++i) inner *= sizes[i];
      for (std::int64_t p = 0; p < points; ++p) {
        const std::int64_t at = p / inner % sizes[axis];
        values[static_cast<std::size_t>(axis * points + p)] =
            static_cast<double>(at) / static_cast<double>(std::max<std::int64_t>(1, sizes[axis] - 1));
      }
    }
  };
  return {.shape = Shape(std::move(shape)), .initialize = fill, .role = Role::Buffer, .trainable = false};
}

}  // namespace

SpectralConv::SpectralConv(std::int64_t channels, const Shape& sizes, std::int64_t modes)
    : sizes_(sizes),
      modes_(kept_modes(sizes, modes)),
      weight_(add("weight", {.shape = weight_shape(channels, modes_),
                             .initialize = nn::uniform(0, 1 / static_cast<double>(channels * channels))})) {}

Value SpectralConv::operator()(Value x) const {
  return irfft_low(spectral_product(rfft_low(x, modes_), x.graph().parameter(weight_)), sizes_);
}

template <int Axes>
Fno<Axes>::Fno(const FnoConfig& c)
    : coordinates_(add("coordinates", coordinates(c.sizes))),
      lift_(this, "lift", {.in = c.in + Axes, .out = c.width, .kernel = 1}),
      project1_(this, "project1", {.in = c.width, .out = kProjected, .kernel = 1}),
      project2_(this, "project2", {.in = kProjected, .out = c.out, .kernel = 1}) {
  check(c.depth >= 1 && c.width >= 1 && c.modes >= 1, "fno", "width {}, depth {}, modes {}: expected at least 1 each",
        c.width, c.depth, c.modes);
  for (std::int64_t i = 0; i < c.depth; ++i) {
    spectral_.push_back(
        std::make_unique<nn::Child<SpectralConv>>(this, formatted("spectral{}", i), c.width, c.sizes, c.modes));
    const nn::ConvConfig<Axes> pointwise{.in = c.width, .out = c.width, .kernel = 1};
    pointwise_.push_back(std::make_unique<nn::Child<nn::Conv<Axes>>>(this, formatted("pointwise{}", i), pointwise));
  }
}

template <int Axes>
Value Fno<Axes>::with_coordinates(Value input) const {
  const Value points = input.graph().parameter(coordinates_);
  std::vector<std::int64_t> shape{input.shape()[0]};
  for (int i = 1; i < points.shape().rank(); ++i) shape.push_back(points.shape()[i]);
  return concat({input, broadcast_to(points, Shape(std::move(shape)))}, 1);
}

template <int Axes>
Value Fno<Axes>::operator()(Value input) const {
  Value x = lift_(with_coordinates(input));
  for (std::size_t i = 0; i < spectral_.size(); ++i) {
    x = (*spectral_[i])(x) + (*pointwise_[i])(x);
    if (i + 1 < spectral_.size()) x = gelu_tanh(x);
  }
  return project2_(gelu_tanh(project1_(x)));
}

template class Fno<1>;
template class Fno<2>;
template class Fno<3>;

FieldModelEntry fno_entry() {
  return {
      .name = "fno",
      .description = "fields to fields by a Fourier neural operator, 1-D to 3-D; width 32, depth 4 layers, modes 12",
      .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
        const int axes = spatial_axes("fno", c);
        FnoConfig config{.in = c.input[0], .out = c.output[0], .sizes = c.input.tail()};
        if (c.width > 0) config.width = c.width;
        if (c.depth > 0) config.depth = c.depth;
        if (c.modes > 0) config.modes = c.modes;
        return with_axes(axes,
                         [&](auto n) -> std::unique_ptr<FieldModel> { return std::make_unique<Fno<n()>>(config); });
      },
      .reads = {"modes"}};
}

}  // namespace lockstep::models
