#include "models/zoo/mobilenet.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/same_conv.h"

namespace lockstep::models {
namespace {

nn::BatchNormConfig norm_of(std::int64_t channels) { return {.channels = channels}; }

// Convolution, batch norm and ReLU6.
class ConvNorm : public nn::Sequential {
 public:
  explicit ConvNorm(const nn::Conv2dConfig& c) {
    append<nn::Conv2d>(c).append<nn::BatchNorm2d>(norm_of(c.out)).append(relu6);
  }
};

struct InvertedConfig {
  std::int64_t in, out, stride, expansion;
};

// Expands the channels, convolves each by itself, and projects them without a ReLU behind; with the input added where
// the shape stays.
class InvertedResidual : public nn::Module {
 public:
  explicit InvertedResidual(InvertedConfig c) : residual_(c.stride == 1 && c.in == c.out) {
    const std::int64_t hidden = c.expansion * c.in;
    if (c.expansion != 1) conv_.append<ConvNorm>(same_conv(c.in, hidden, 1));
    conv_.append<ConvNorm>(same_conv(hidden, hidden, 3, c.stride, hidden));
    conv_.append<nn::Conv2d>(same_conv(hidden, c.out, 1)).append<nn::BatchNorm2d>(norm_of(c.out));
  }

  Value operator()(Value x) const {  // (N, in, H, W) -> (N, out, H / stride, W / stride)
    const auto in_block = block(x);
    const Value y = conv_(x);
    return residual_ ? x + y : y;
  }

 private:
  bool residual_;
  nn::Child<nn::Sequential> conv_{this, "conv"};
};

// The multiple of 8 that is nearest to `channels`, at least 8 and at least nine tenths of `channels`.
std::int64_t divisible(double channels) {
  const std::int64_t nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

struct StageConfig {
  std::int64_t expansion, channels, blocks, stride;
};
constexpr StageConfig kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                   {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};  // table 2 of the paper

}  // namespace

MobileNetV2::MobileNetV2(const MobileNetV2Config& c) {
  constexpr double kStem = 32, kLast = 1280;
  check(c.width > 0 && c.in_channels > 0 && c.classes > 0, "mobilenet",
        "width {}, input channels {}, classes {}: all must be positive", c.width, c.in_channels, c.classes);
  std::int64_t in = divisible(kStem * c.width);
  features_.append<ConvNorm>(same_conv(c.in_channels, in, 3, c.small_images ? 1 : 2));
  for (const StageConfig& stage : kStages) {
    const std::int64_t out = divisible(static_cast<double>(stage.channels) * c.width);
    const bool keeps_size = c.small_images && &stage == &kStages[1];
    for (std::int64_t i = 0; i < stage.blocks; ++i, in = out) {
      const std::int64_t stride = i == 0 && !keeps_size ? stage.stride : 1;
      features_.append<InvertedResidual>(InvertedConfig{in, out, stride, stage.expansion});
    }
  }
  const std::int64_t last = divisible(kLast * std::max(1.0, c.width));
  features_.append<ConvNorm>(same_conv(in, last, 1));
  classifier_.append<nn::Dropout>(c.dropout);
  classifier_.append<nn::Linear>(
      nn::LinearConfig{.in = last, .out = c.classes, .weight_init = nn::normal(0, 0.01), .bias_init = nn::constant(0)});
}

Value MobileNetV2::operator()(Value images) const {
  return classifier_(flatten(global_average_pool2d(features_(images))));
}

std::vector<ModelEntry> mobilenet_entries() {
  const auto build = [](bool small_images) {
    return [small_images](std::int64_t classes, const Shape& image) {
      check(image.rank() == 3, "mobilenet", "images are {}, expected (channels, height, width)", image.str());
      return std::make_unique<MobileNetV2>(
          MobileNetV2Config{.small_images = small_images, .in_channels = image[0], .classes = classes});
    };
  };
  return {{.name = "mobilenet_v2",
           .description = "torchvision's MobileNetV2",
           .image = {3, 224, 224},
           .classes = 1000,
           .build = build(false)},
          {.name = "mobilenet_v2_cifar",
           .description = "MobileNetV2 with strides of 1 in the stem and the second stage, for 32x32 images",
           .image = {3, 32, 32},
           .classes = 10,
           .build = build(true)}};
}

}  // namespace lockstep::models
