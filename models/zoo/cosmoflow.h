// CosmoFlow's network from fields to numbers, in the structure of MLPerf HPC's reference (Mathuriya et al., "CosmoFlow:
// using deep learning to learn the universe at scale", 2018; convolutions of twice the channels from level to level,
// each with leaky ReLU and a max pool of 2, and three linear layers), over 1 to 3 spatial axes. Layers: "conv0", ...,
// "dense1", "dense2", "output".
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/convolution.h"
#include "lockstep/nn/layers.h"
#include "models/zoo/field_model.h"

namespace lockstep::models {

struct CosmoFlowConfig {
  Shape input = {4, 128, 128, 128};  // of one sample: (channels, sizes)
  Shape output = {4};
  std::int64_t width = 32;      // channels of the first convolution
  std::int64_t levels = 5;      // convolutions; each halves the sizes, rounded up with a kernel of 2, else down
  std::int64_t kernel = 2;      // or 3, with a padding of 1
  double dropout = 0.5;         // behind the first two linear layers
  double negative_slope = 0.3;  // of the leaky ReLUs
  bool bounded = true;          // outputs are 1.2 sigmoid(x), for targets from 0 to 1; else they are plain numbers
};

template <int Axes>
class CosmoFlow final : public FieldModel {
 public:
  explicit CosmoFlow(const CosmoFlowConfig& config);
  Value operator()(Value input) const override;

 private:
  using Convolutions = std::vector<std::unique_ptr<nn::Child<nn::Conv<Axes>>>>;
  Convolutions convolutions();

  CosmoFlowConfig config_;
  Convolutions convolutions_ = convolutions();
  nn::Child<nn::Linear> dense1_, dense2_, output_;
  nn::Child<nn::Dropout> dropout1_, dropout2_;
};

extern template class CosmoFlow<1>;
extern template class CosmoFlow<2>;
extern template class CosmoFlow<3>;

FieldModelEntry cosmoflow_entry();

}  // namespace lockstep::models
