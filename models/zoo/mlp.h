// Linear layers with ReLU between them, on the flattened input. Layers are named as in a PyTorch Sequential of Linear
// and ReLU: "0", "2", "4", ...
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

class Mlp : public Classifier {
 public:
  explicit Mlp(const std::vector<std::int64_t>& sizes);  // {256, 1024, 10}: inputs, hidden layers, classes
  Value operator()(Value x) const override;

 private:
  std::vector<std::unique_ptr<nn::Child<nn::Linear>>> layers_;
};

}  // namespace lockstep::models
