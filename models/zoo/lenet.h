// The small convolutional network of PyTorch's CIFAR-10 tutorial, after LeCun et al., "Gradient-based learning applied
// to document recognition" (1998): conv 3-6-5, pool, conv 6-16-5, pool, 400-120-84-classes on 32x32 images, ReLU
// between.
#pragma once

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

struct LeNetConfig {
  Shape image = {3, 32, 32};  // channels, height, width; sizes the first linear layer
  std::int64_t classes = 10;
};

class LeNet : public Classifier {
 public:
  explicit LeNet(const LeNetConfig& config = {});
  Value operator()(Value images) const override;

 private:
  LeNetConfig c_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", {.in = c_.image[0], .out = 6, .kernel = 5}};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", {.in = 6, .out = 16, .kernel = 5}};
  nn::Child<nn::Linear> fc1_{this, "fc1", {.in = features(c_.image), .out = 120}};
  nn::Child<nn::Linear> fc2_{this, "fc2", {.in = 120, .out = 84}};
  nn::Child<nn::Linear> fc3_{this, "fc3", {.in = 84, .out = c_.classes}};

  static std::int64_t features(const Shape& image);  // inputs of the first linear layer
};

}  // namespace lockstep::models
