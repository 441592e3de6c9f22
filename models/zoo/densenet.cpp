#include "models/zoo/densenet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/same_conv.h"

namespace lockstep::models {
// Named, as DenseNet::Features has members of these types.
namespace dense {

nn::Conv2dConfig dense_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return same_conv(in, out, kernel, stride, 1, nn::Fan::In);
}

class DenseLayer : public nn::Module {
 public:
  DenseLayer(std::int64_t in, const DenseNetConfig& c)
      : norm1_(this, "norm1", {.channels = in}),
        conv1_(this, "conv1", dense_conv(in, c.bottleneck * c.growth, 1)),
        norm2_(this, "norm2", {.channels = c.bottleneck * c.growth}),
        conv2_(this, "conv2", dense_conv(c.bottleneck * c.growth, c.growth, 3)) {}

  Value operator()(Value x) const {  // (N, in, H, W) -> (N, growth, H, W)
    const auto in_block = block(x);
    return conv2_(relu(norm2_(conv1_(relu(norm1_(x))))));
  }

 private:
  nn::Child<nn::BatchNorm2d> norm1_;
  nn::Child<nn::Conv2d> conv1_;
  nn::Child<nn::BatchNorm2d> norm2_;
  nn::Child<nn::Conv2d> conv2_;
};

// Layers of which each reads the input and the outputs of all layers before it.
class DenseBlock : public nn::Module {
 public:
  DenseBlock(std::int64_t in, std::int64_t layers, const DenseNetConfig& c) {
    for (std::int64_t i = 0; i < layers; ++i) {
      layers_.push_back(
          std::make_unique<nn::Child<DenseLayer>>(this, formatted("denselayer{}", i + 1), in + i * c.growth, c));
    }
  }

  Value operator()(Value x) const {
    for (const auto& layer : layers_) x = concat({x, (*layer)(x)}, 1);
    return x;
  }

 private:
  std::vector<std::unique_ptr<nn::Child<DenseLayer>>> layers_;
};

class Transition : public nn::Module {
 public:
  explicit Transition(std::int64_t in)
      : norm_(this, "norm", {.channels = in}), conv_(this, "conv", dense_conv(in, in / 2, 1)) {}

  Value operator()(Value x) const {  // (N, in, H, W) -> (N, in / 2, H / 2, W / 2)
    return nn::average_pool(conv_(relu(norm_(x))), {.kernel = 2});
  }

 private:
  nn::Child<nn::BatchNorm2d> norm_;
  nn::Child<nn::Conv2d> conv_;
};

const DenseNetConfig& checked(const DenseNetConfig& c) {
  check(!c.layers.empty() && c.layers.size() <= 8, "densenet", "{} blocks, expected 1 to 8", c.layers.size());
  for (const std::int64_t n : c.layers) check(n > 0, "densenet", "a block of {} layers, expected at least 1", n);
  check(c.growth > 0 && c.stem_channels > 0 && c.bottleneck > 0 && c.in_channels > 0 && c.classes > 0, "densenet",
        "growth {}, stem channels {}, bottleneck {}, input channels {}, classes {}: all must be positive", c.growth,
        c.stem_channels, c.bottleneck, c.in_channels, c.classes);
  return c;
}

}  // namespace dense

using dense::checked, dense::dense_conv, dense::DenseBlock, dense::Transition;

class DenseNet::Features : public nn::Module {
 public:
  explicit Features(const DenseNetConfig& c)
      : imagenet_(c.stem == DenseNetConfig::Stem::ImageNet), channels_(c.stem_channels) {
    conv0_ = std::make_unique<nn::Child<nn::Conv2d>>(
        this, "conv0",
        imagenet_ ? dense_conv(c.in_channels, channels_, 7, 2) : dense_conv(c.in_channels, channels_, 3));
    if (imagenet_) norm0_ = norm("norm0");
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      if (i > 0) {
        transitions_.push_back(std::make_unique<nn::Child<Transition>>(this, formatted("transition{}", i), channels_));
        channels_ /= 2;
      }
      blocks_.push_back(
          std::make_unique<nn::Child<DenseBlock>>(this, formatted("denseblock{}", i + 1), channels_, c.layers[i], c));
      channels_ += c.layers[i] * c.growth;
    }
    norm5_ = norm("norm5");
  }

  std::int64_t channels() const { return channels_; }  // of the result

  Value operator()(Value images) const {
    Value x = (*conv0_)(images);
    if (imagenet_) x = nn::max_pool(relu((*norm0_)(x)), {.kernel = 3, .stride = 2, .padding = 1});
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (i > 0) x = (*transitions_[i - 1])(x);
      x = (*blocks_[i])(x);
    }
    return (*norm5_)(x);
  }

 private:
  using Norm = std::unique_ptr<nn::Child<nn::BatchNorm2d>>;
  Norm norm(const char* name) {
    return std::make_unique<nn::Child<nn::BatchNorm2d>>(this, name, nn::BatchNormConfig{.channels = channels_});
  }

  bool imagenet_;
  std::int64_t channels_;
  std::unique_ptr<nn::Child<nn::Conv2d>> conv0_;
  Norm norm0_, norm5_;
  std::vector<std::unique_ptr<nn::Child<DenseBlock>>> blocks_;
  std::vector<std::unique_ptr<nn::Child<Transition>>> transitions_;
};

DenseNet::DenseNet(const DenseNetConfig& config)
    : features_(std::make_unique<nn::Child<Features>>(this, "features", checked(config))),
      classifier_(std::make_unique<nn::Child<nn::Linear>>(
          this, "classifier",
          nn::LinearConfig{.in = features_->channels(), .out = config.classes, .bias_init = nn::constant(0)})) {}

DenseNet::~DenseNet() = default;

Value DenseNet::operator()(Value images) const {
  return (*classifier_)(flatten(global_average_pool2d(relu((*features_)(images)))));
}

DenseNetConfig densenet_config(int depth) {
  switch (depth) {
    case 121:
      return {};
    case 161:
      return {.growth = 48, .layers = {6, 12, 36, 24}, .stem_channels = 96};
    case 169:
      return {.layers = {6, 12, 32, 32}};
    case 201:
      return {.layers = {6, 12, 48, 32}};
    case 100:
      return {.growth = 12,
              .layers = {16, 16, 16},
              .stem_channels = 24,
              .stem = DenseNetConfig::Stem::Cifar,
              .classes = 10};
    default:
      fail("densenet", "there is no depth {}; depths: 121, 161, 169, 201 as in torchvision, 100 for CIFAR", depth);
  }
}

std::vector<ModelEntry> densenet_entries() {
  std::vector<ModelEntry> entries;
  for (const int depth : {121, 161, 169, 201, 100}) {
    const DenseNetConfig config = densenet_config(depth);
    const bool cifar = config.stem == DenseNetConfig::Stem::Cifar;
    entries.push_back(
        {.name = formatted("densenet{}{}", depth, cifar ? "_cifar" : ""),
         .description = cifar ? formatted("DenseNet-BC of {} layers, growth {}, for 32x32 images", depth, config.growth)
                              : formatted("torchvision's DenseNet-{}", depth),
         .image = cifar ? Shape{3, 32, 32} : Shape{3, 224, 224},
         .classes = config.classes,
         .build = [config](std::int64_t classes, const Shape& image) {
           check(image.rank() == 3, "densenet", "images are {}, expected (channels, height, width)", image.str());
           DenseNetConfig own = config;
           own.in_channels = image[0];
           own.classes = classes;
           return std::make_unique<DenseNet>(own);
         }});
  }
  return entries;
}

}  // namespace lockstep::models
