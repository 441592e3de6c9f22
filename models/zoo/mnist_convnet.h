// The network of PyTorch's MNIST example: conv 1-32-3, conv 32-64-3, pool 2, dropout 1/4, 9216-128, dropout 1/2,
// 128-classes on 28x28 images, ReLU between.
#pragma once

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep {

struct MnistConvNetConfig {
  Shape image = {1, 28, 28};  // channels, height, width; sizes the first linear layer
  std::int64_t classes = 10;
};

class MnistConvNet : public Classifier {
 public:
  explicit MnistConvNet(const MnistConvNetConfig& config = {});
  Value operator()(Value images) const override;

 private:
  nn::Conv2d conv1_, conv2_;
  nn::Dropout dropout1_, dropout2_;
  nn::Linear fc1_, fc2_;
};

}  // namespace lockstep
