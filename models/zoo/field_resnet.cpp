#include "models/zoo/field_resnet.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

template <int Axes>
nn::ConvConfig<Axes> conv3(std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  return {.in = in,
          .out = out,
          .kernel = 3,
          .stride = stride,
          .padding = 1,
          .bias = false,
          .weight_init = nn::kaiming_normal(nn::Fan::Out)};
}

nn::BatchNormConfig field_norm(std::int64_t channels) { return {.channels = channels}; }

// A convolution, batch norm and ReLU.
template <int Axes>
void append_conv(nn::Sequential& body, std::int64_t in, std::int64_t out, std::int64_t stride = 1) {
  body.append<nn::Conv<Axes>>(conv3<Axes>(in, out, stride))
      .template append<BatchNormOf<Axes>>(field_norm(out))
      .append(relu);
}

}  // namespace

template <int Axes>
FieldBlock<Axes>::FieldBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
    : conv1_(this, "conv1", conv3<Axes>(in, out, stride)),
      bn1_(this, "bn1", field_norm(out)),
      conv2_(this, "conv2", conv3<Axes>(out, out)),
      bn2_(this, "bn2", field_norm(out)) {
  if (stride == 1 && in == out) return;
  const nn::ConvConfig<Axes> projection{.in = in, .out = out, .kernel = 1, .stride = stride, .bias = false};
  shortcut_ = std::make_unique<nn::Child<nn::Conv<Axes>>>(this, "shortcut", projection);
  shortcut_bn_ = std::make_unique<nn::Child<BatchNormOf<Axes>>>(this, "shortcut_bn", field_norm(out));
}

template <int Axes>
Value FieldBlock<Axes>::operator()(Value x) const {
  const auto in_block = this->block(x);
  const Value y = bn2_(conv2_(relu(bn1_(conv1_(x)))));
  return relu(y + (shortcut_ ? (*shortcut_bn_)((*shortcut_)(x)) : x));
}

template <int Axes>
FieldToNumbers<Axes>::FieldToNumbers(const FieldToNumbersConfig& c)
    : output_(c.output),
      body_(this, "body"),
      head_(this, "head", {.in = c.width << std::max<std::int64_t>(0, c.depth - 1), .out = c.output.elements()}) {
  check(c.width >= 1 && c.depth >= 1 && c.depth <= 10, "resnet",
        "width {} and {} stages, expected at least 1 and 1 to 10", c.width, c.depth);
  append_conv<Axes>(body_, c.in, c.width);
  std::int64_t in = c.width;
  for (std::int64_t stage = 0; stage < c.depth; ++stage) {
    const std::int64_t out = c.width << stage;
    body_.append<FieldBlock<Axes>>(in, out, stage == 0 ? 1 : 2).template append<FieldBlock<Axes>>(out, out, 1);
    in = out;
  }
}

template <int Axes>
Value FieldToNumbers<Axes>::operator()(Value input) const {
  return reshape(head_(flatten(global_average_pool(body_(input)))), output_.batched(input.shape()[0]));
}

template <int Axes>
FieldResNet<Axes>::FieldResNet(const FieldResNetConfig& c)
    : body_(this, "body"), head_(this, "head", {.in = c.width, .out = c.out, .kernel = 3, .padding = 1}) {
  check(c.width >= 1 && c.depth >= 0 && c.halvings >= 0 && c.halvings <= 10, "resnet",
        "width {}, {} blocks, {} halvings: expected at least 1, at least 0, and 0 to 10", c.width, c.depth, c.halvings);
  append_conv<Axes>(body_, c.in, c.width);
  std::int64_t channels = c.width;
  for (std::int64_t i = 0; i < c.halvings; ++i, channels *= 2) append_conv<Axes>(body_, channels, 2 * channels, 2);
  for (std::int64_t i = 0; i < c.depth; ++i) body_.append<FieldBlock<Axes>>(channels, channels, 1);
  for (std::int64_t i = 0; i < c.halvings; ++i, channels /= 2) {
    const nn::ConvTransposeConfig<Axes> grow{
        .in = channels, .out = channels / 2, .kernel = 2, .stride = 2, .bias = false};
    body_.append<nn::ConvTranspose<Axes>>(grow).template append<BatchNormOf<Axes>>(field_norm(grow.out)).append(relu);
  }
}

template <int Axes>
Value FieldResNet<Axes>::operator()(Value input) const {
  return head_(body_(input));
}

FieldModelEntry field_resnet_entry() {
  return {.name = "resnet",
          .description =
              "fields to numbers by a ResNet, 1-D to 3-D; width 32, depth 4 stages; and fields to fields by residual "
              "blocks at a quarter of the sizes; width 32, depth 6 blocks",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            const int axes = spatial_axes_of_input("resnet", c);
            const Shape sizes = c.input.tail();
            if (c.output.rank() == c.input.rank()) {
              spatial_axes("resnet", c);  // equal sizes
              FieldResNetConfig config{.in = c.input[0], .out = c.output[0], .halvings = halvings(sizes, 2)};
              if (c.width > 0) config.width = c.width;
              if (c.depth > 0) config.depth = c.depth;
              return with_axes(axes, [&](auto n) -> std::unique_ptr<FieldModel> {
                return std::make_unique<FieldResNet<n()>>(config);
              });
            }
            FieldToNumbersConfig config{.in = c.input[0], .output = c.output};
            if (c.width > 0) config.width = c.width;
            config.depth = c.depth > 0 ? c.depth : 1 + rough_halvings(sizes, config.depth - 1);
            return with_axes(axes, [&](auto n) -> std::unique_ptr<FieldModel> {
              return std::make_unique<FieldToNumbers<n()>>(config);
            });
          }};
}

}  // namespace lockstep::models
