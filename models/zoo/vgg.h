// VGG networks (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2014):
// 11, 13, 16 and 19 layers, plain or with batch norm, with torchvision's names, shapes and initialisation. For images
// of another size than 224 x 224 the first linear layer reads the last maps directly, while torchvision pools them to 7
// x 7.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/nn/sequential.h"
#include "models/zoo/classifier.h"
#include "models/zoo/registry.h"

namespace lockstep::models {

struct VggConfig {
  std::vector<int> convolutions = {1, 1, 2, 2, 2};  // 3x3, per stage; a 2x2 max pool ends each stage
  bool norms = false;                               // a batch norm after every convolution
  Shape image = {3, 224, 224};                      // channels, height, width; sizes the first linear layer
  std::int64_t classes = 1000;
  double dropout = 0.5;
};

// Returns the configuration of this depth with defaults. Throws Error that lists the depths for another depth.
VggConfig vgg_config(int depth, bool norms = false);

class Vgg : public Classifier {
 public:
  explicit Vgg(const VggConfig& config);
  Value operator()(Value images) const override;

 private:
  nn::Child<nn::Sequential> features_{this, "features"};
  nn::Child<nn::Sequential> classifier_{this, "classifier"};
};

std::vector<ModelEntry> vgg_entries();  // vgg11, vgg11_bn, ..., as torchvision calls them

}  // namespace lockstep::models
