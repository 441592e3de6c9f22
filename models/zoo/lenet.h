// The small convolutional network of PyTorch's CIFAR-10 tutorial, after LeCun et al., "Gradient-based learning applied
// to document recognition" (1998): conv 3-6-5, pool, conv 6-16-5, pool, 400-120-84-classes on 32x32 images, ReLU
// between.
#pragma once

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep {

struct LeNetConfig {
  Shape image = {3, 32, 32};  // channels, height, width; sizes the first linear layer
  std::int64_t classes = 10;
};

class LeNet : public Classifier {
 public:
  explicit LeNet(const LeNetConfig& config = {});
  Value operator()(Value images) const override;

 private:
  nn::Conv2d conv1_, conv2_;
  nn::Linear fc1_, fc2_, fc3_;
};

}  // namespace lockstep
