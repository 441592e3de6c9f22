// Linear layers with ReLU between them, on the flattened input. Layers are named as in a PyTorch Sequential of Linear
// and ReLU: "0", "2", "4", ...
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/nn/layers.h"
#include "models/zoo/classifier.h"

namespace lockstep::models {

using LinearLayers = std::vector<std::unique_ptr<nn::Child<nn::Linear>>>;

// Adds to `owner` the linear layers between sizes {inputs, hidden ..., outputs}, with those names. Throws Error for
// fewer than two sizes, and for one that is not positive.
LinearLayers linear_layers(nn::Module* owner, const std::vector<std::int64_t>& sizes);

class Mlp : public Classifier {
 public:
  explicit Mlp(const std::vector<std::int64_t>& sizes);  // {256, 1024, 10}: inputs, hidden layers, classes
  Value operator()(Value x) const override;

 private:
  LinearLayers layers_;
};

}  // namespace lockstep::models
