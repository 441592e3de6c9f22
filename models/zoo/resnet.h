// Residual networks (He et al., "Deep residual learning for image recognition", 2015): 18, 34, 50, 101, 152 with
// torchvision's names, shapes and initialisation, and the family of the paper's section 4.2 for CIFAR: 20, 32, 44, 56,
// 110. Bottlenecks have their stride on the 3x3 convolution; every shortcut that changes shape is a projection. With
// grouped or wider bottlenecks they are ResNeXt (Xie et al., "Aggregated residual transformations for deep neural
// networks", 2016) and wide residual networks (Zagoruyko and Komodakis, "Wide residual networks", 2016).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

struct ResNetConfig {
  enum class Block : std::uint8_t { Basic, Bottleneck };
  enum class Stem : std::uint8_t {
    ImageNet,  // 7x7 stride 2, then a 3x3 max pool of stride 2
    Cifar,     // 3x3 stride 1, no pool
  };
  Block block = Block::Basic;
  std::vector<std::int64_t> blocks = {2, 2, 2, 2};  // per stage; each stage but the first halves height and width
  std::int64_t width = 64;                          // channels of stem and first stage; they double from stage to stage
  Stem stem = Stem::ImageNet;
  // Of a bottleneck: its 3x3 convolution has channels * width_per_group / 64 * groups channels in this many groups.
  std::int64_t groups = 1, width_per_group = 64;
  std::int64_t in_channels = 3, classes = 1000;
  bool zero_residual =
      false;  // the last scale of every block starts at 0, so blocks start as identities (Goyal et al. (2017))
};

// Returns the configuration of this depth, with default classes and channels. Without a stem it has the default of the
// depth: that of ImageNet for torchvision's depths, that of CIFAR for the CIFAR family (6 n + 2), which has no other.
// Throws Error for another depth, and for a stem that the depth cannot have.
ResNetConfig resnet_config(int depth, std::optional<ResNetConfig::Stem> stem = {});

class ResNet : public Classifier {
 public:
  explicit ResNet(const ResNetConfig& config);
  Value operator()(Value images) const override;

 private:
  using Stage = nn::Child<nn::Sequential>;
  nn::Conv2dConfig stem() const;
  std::vector<std::unique_ptr<Stage>> stages();  // "layer1", "layer2", ...
  std::int64_t features() const;                 // channels of the last stage

  ResNetConfig c_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", stem()};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", {.channels = c_.width}};
  std::vector<std::unique_ptr<Stage>> stages_ = stages();
  nn::Child<nn::Linear> fc_{this, "fc", {.in = features(), .out = c_.classes}};
};

}  // namespace lockstep::models
