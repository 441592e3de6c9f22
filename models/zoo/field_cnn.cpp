#include "models/zoo/field_cnn.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep::models {

template <int Axes>
FieldCnn<Axes>::FieldCnn(const FieldCnnConfig& c)
    : in_(this, "in", {.in = c.in, .out = c.width, .kernel = 3, .padding = 1}),
      head_(this, "head", {.in = c.width, .out = c.out, .kernel = 1}) {
  check(c.depth >= 0, "cnn", "depth {}, expected at least 0", c.depth);
  for (std::int64_t i = 0; i < c.depth; ++i) {
    blocks_.push_back(std::make_unique<nn::Child<DoubleConv<Axes>>>(this, formatted("block{}", i), c.width, c.width));
  }
}

template <int Axes>
Value FieldCnn<Axes>::operator()(Value input) const {
  Value x = in_(input);
  for (const auto& block : blocks_) x = x + (*block)(x);
  return head_(x);
}

template <int Axes>
Autoencoder<Axes>::Autoencoder(const AutoencoderConfig& c)
    : levels_(c.levels), head_(this, "head", {.in = c.width, .out = c.out, .kernel = 3, .padding = 1}) {
  check(c.levels >= 1 && c.levels <= 10, "autoencoder", "{} levels, expected 1 to 10", c.levels);
  std::int64_t in = c.in, out = c.width;
  for (std::int64_t level = 0; level < c.levels; ++level, in = out, out *= 2) {
    const nn::ConvConfig<Axes> shrink{.in = in, .out = out, .kernel = 3, .stride = 2, .padding = 1, .bias = false};
    shrink_.push_back(std::make_unique<nn::Child<nn::Conv<Axes>>>(this, formatted("encoder{}", level), shrink));
    shrink_norms_.push_back(std::make_unique<nn::Child<BatchNormOf<Axes>>>(this, formatted("encoder{}_bn", level),
                                                                           nn::BatchNormConfig{.channels = out}));
  }
  for (std::int64_t level = c.levels - 1; level >= 0; --level, in = out) {
    out = level > 0 ? in / 2 : c.width;
    const nn::ConvTransposeConfig<Axes> grow{.in = in, .out = out, .kernel = 2, .stride = 2, .bias = false};
    grow_.push_back(std::make_unique<nn::Child<nn::ConvTranspose<Axes>>>(this, formatted("decoder{}", level), grow));
    grow_norms_.push_back(std::make_unique<nn::Child<BatchNormOf<Axes>>>(this, formatted("decoder{}_bn", level),
                                                                         nn::BatchNormConfig{.channels = out}));
  }
}

template <int Axes>
Value Autoencoder<Axes>::operator()(Value input) const {
  return decode(encode(input));
}

template <int Axes>
Value Autoencoder<Axes>::encode(Value input) const {
  const Shape sizes = input.shape().tail().tail();
  for (int i = 0; i < sizes.rank(); ++i) {
    check(sizes[i] % (std::int64_t{1} << levels_) == 0, "autoencoder",
          "a sample is {}, and {} levels need sizes that {} divides; expected such sizes, or fewer levels",
          input.shape().tail().str(), levels_, std::int64_t{1} << levels_);
  }
  Value x = input;
  for (std::size_t i = 0; i < shrink_.size(); ++i) x = relu((*shrink_norms_[i])((*shrink_[i])(x)));
  return x;
}

template <int Axes>
Value Autoencoder<Axes>::decode(Value x) const {
  for (std::size_t i = 0; i < grow_.size(); ++i) x = relu((*grow_norms_[i])((*grow_[i])(x)));
  return head_(x);
}

template class FieldCnn<1>;
template class FieldCnn<2>;
template class FieldCnn<3>;
template class Autoencoder<1>;
template class Autoencoder<2>;
template class Autoencoder<3>;

FieldModelEntry field_cnn_entry() {
  return {.name = "cnn",
          .description =
              "fields to fields by residual convolutions at full resolution, 1-D to 3-D; width 64, depth 4 pairs",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            const int axes = spatial_axes("cnn", c);
            FieldCnnConfig config{.in = c.input[0], .out = c.output[0]};
            if (c.width > 0) config.width = c.width;
            if (c.depth > 0) config.depth = c.depth;
            return with_axes(
                axes, [&](auto n) -> std::unique_ptr<FieldModel> { return std::make_unique<FieldCnn<n()>>(config); });
          }};
}

AutoencoderConfig autoencoder_config(const FieldModelConfig& c) {
  AutoencoderConfig config{.in = c.input[0], .out = c.output[0]};
  if (c.width > 0) config.width = c.width;
  if (c.depth > 0) config.levels = c.depth;
  return config;
}

FieldModelEntry autoencoder_entry() {
  return {.name = "autoencoder",
          .description =
              "fields to fields by a convolutional autoencoder, 1-D to 3-D, for sizes that 2^depth divides; width 32, "
              "depth 3 levels",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            return with_axes(spatial_axes("autoencoder", c), [&](auto n) -> std::unique_ptr<FieldModel> {
              return std::make_unique<Autoencoder<n()>>(autoencoder_config(c));
            });
          }};
}

}  // namespace lockstep::models
