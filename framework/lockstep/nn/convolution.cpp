#include "lockstep/nn/convolution.h"

#include <algorithm>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::nn {
namespace {

// Throws Error where the channels do not divide.
template <class Config>
const Config& with_fitting_groups(const Config& c) {
  check(c.in > 0 && c.out > 0 && c.groups > 0 && c.in % c.groups == 0 && c.out % c.groups == 0, "convolution",
        "{} input and {} output channels do not divide into {} groups", c.in, c.out, c.groups);
  return c;
}

template <class Config>
ConvolutionOptions convolution_options(const Config& c, int axes) {
  ConvolutionOptions o{.groups = c.groups};
  for (int i = 0; i < axes; ++i) {
    o.axes.push_back({.stride = c.stride[i], .padding = c.padding[i], .dilation = c.dilation[i]});
  }
  return o;
}

// (first, second, kernel)
template <class Config>
Shape filter_shape(std::int64_t first, std::int64_t second, const Config& c) {
  std::vector<std::int64_t> sizes{first, second};
  for (const std::int64_t size : c.kernel.values()) sizes.push_back(size);
  return Shape(std::move(sizes));
}

// PyTorch's default has the second dimension of the weight as its fan, also where that counts outputs.
Parameter weight_parameter(Shape shape, const Initializer& init) {
  const std::int64_t fan = shape.tail().elements();
  return {.shape = std::move(shape), .initialize = init ? init : torch_default(fan)};
}

Parameter bias_parameter(std::int64_t out, const Shape& weight, const Initializer& init) {
  return {.shape = {out}, .initialize = init ? init : torch_default(weight.tail().elements()), .role = Role::Bias};
}

}  // namespace

template <int Axes>
Conv<Axes>::Conv(Config c)
    : options_(convolution_options(with_fitting_groups(c), Axes)),
      padding_mode_(c.padding_mode),
      weight_(add("weight", weight_parameter(filter_shape(c.out, c.in / c.groups, c), c.weight_init))),
      bias_(c.bias ? &add("bias", bias_parameter(c.out, weight_.shape, c.bias_init)) : nullptr) {
  if (padding_mode_ == PaddingMode::Zeros) return;
  padding_ = c.padding.values();
  for (ConvolutionAxis& axis : options_.axes) axis.padding = 0;
}

template <int Axes>
Value Conv<Axes>::operator()(Value x) const {
  Graph& g = x.graph();
  const bool pads = std::ranges::any_of(padding_, [](std::int64_t p) { return p != 0; });
  return convolution(pads ? pad_spatial(x, padding_, padding_mode_) : x, g.parameter(weight_),
                     bias_ != nullptr ? g.parameter(*bias_) : Value(), options_);
}

template <int Axes>
ConvTranspose<Axes>::ConvTranspose(Config c)
    : options_{.convolution = convolution_options(with_fitting_groups(c), Axes),
               .output_padding = c.output_padding.values()},
      weight_(add("weight", weight_parameter(filter_shape(c.in, c.out / c.groups, c), c.weight_init))),
      bias_(c.bias ? &add("bias", bias_parameter(c.out, weight_.shape, c.bias_init)) : nullptr) {}

template <int Axes>
Value ConvTranspose<Axes>::operator()(Value x) const {
  Graph& g = x.graph();
  return conv_transpose(x, g.parameter(weight_), bias_ != nullptr ? g.parameter(*bias_) : Value(), options_);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace lockstep::nn
