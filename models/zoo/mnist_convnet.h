// The network of PyTorch's MNIST example: conv 1-32-3, conv 32-64-3, pool 2, dropout 1/4, 9216-128, dropout 1/2,
// 128-classes on 28x28 images, ReLU between.
#pragma once

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

struct MnistConvNetConfig {
  Shape image = {1, 28, 28};  // channels, height, width; sizes the first linear layer
  std::int64_t classes = 10;
};

class MnistConvNet : public Classifier {
 public:
  explicit MnistConvNet(const MnistConvNetConfig& config = {});
  Value operator()(Value images) const override;

 private:
  MnistConvNetConfig c_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", {.in = c_.image[0], .out = 32, .kernel = 3}};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", {.in = 32, .out = 64, .kernel = 3}};
  nn::Child<nn::Dropout> dropout1_{this, "dropout1", 0.25};
  nn::Child<nn::Dropout> dropout2_{this, "dropout2", 0.5};
  nn::Child<nn::Linear> fc1_{this, "fc1", {.in = features(c_.image), .out = 128}};
  nn::Child<nn::Linear> fc2_{this, "fc2", {.in = 128, .out = c_.classes}};

  static std::int64_t features(const Shape& image);  // inputs of the first linear layer
};

}  // namespace lockstep::models
