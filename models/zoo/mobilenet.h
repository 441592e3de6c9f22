// MobileNetV2 (Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018) with torchvision's
// names, shapes and initialisation, and a form for 32x32 images whose stem and second stage keep height and width.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "models/zoo/classifier.h"
#include "models/zoo/registry.h"

namespace lockstep::models {

struct MobileNetV2Config {
  double width = 1;           // factor of all channels; results are multiples of 8
  bool small_images = false;  // strides of 1 in the stem and the second stage
  double dropout = 0.2;       // before the classifier
  std::int64_t in_channels = 3, classes = 1000;
};

class MobileNetV2 : public Classifier {
 public:
  explicit MobileNetV2(const MobileNetV2Config& config = {});
  Value operator()(Value images) const override;

 private:
  nn::Child<nn::Sequential> features_{this, "features"};
  nn::Child<nn::Sequential> classifier_{this, "classifier"};
};

std::vector<ModelEntry> mobilenet_entries();  // mobilenet_v2, as torchvision calls it, and mobilenet_v2_cifar

}  // namespace lockstep::models
