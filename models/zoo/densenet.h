// Densely connected networks (Huang et al., "Densely connected convolutional networks", 2016): 121, 161, 169, 201 with
// torchvision's names, shapes and initialisation, and DenseNet-BC of 100 layers for CIFAR (section 4.2 of the paper).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"
#include "models/zoo/registry.h"

namespace lockstep::models {

struct DenseNetConfig {
  enum class Stem : std::uint8_t {
    ImageNet,  // 7x7 stride 2, batch norm, then a 3x3 max pool of stride 2
    Cifar,     // 3x3 stride 1
  };
  std::int64_t growth = 32;                            // channels that a layer adds
  std::vector<std::int64_t> layers = {6, 12, 24, 16};  // per block; each block but the first halves height and width
  std::int64_t stem_channels = 64;
  std::int64_t bottleneck = 4;  // a 3x3 convolution reads this many times `growth` channels
  Stem stem = Stem::ImageNet;
  std::int64_t in_channels = 3, classes = 1000;
};

// Returns the configuration of this depth with default channels and classes. Throws Error that lists the depths for
// another one.
DenseNetConfig densenet_config(int depth);

class DenseNet : public Classifier {
 public:
  explicit DenseNet(const DenseNetConfig& config);
  ~DenseNet() override;
  Value operator()(Value images) const override;

 private:
  class Features;
  std::unique_ptr<nn::Child<Features>> features_;
  std::unique_ptr<nn::Child<nn::Linear>> classifier_;
};

std::vector<ModelEntry> densenet_entries();  // densenet121, ..., as torchvision calls them, and densenet100_cifar

}  // namespace lockstep::models
