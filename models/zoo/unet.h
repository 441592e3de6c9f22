// U-Net over 1 to 3 spatial axes (Ronneberger, Fischer and Brox (2015), "U-Net: convolutional networks for biomedical
// image segmentation"; in 3-D Cicek et al. (2016)), with padded convolutions and batch norm: the output has the spatial
// sizes of the input. Layers: "down0" ... "downL", "grow0" ..., "up0" ..., "head".
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/convolution.h"
#include "models/zoo/field_model.h"
#include "models/zoo/spatial.h"

namespace lockstep::models {

struct UNetConfig {
  std::int64_t in = 1, out = 1;  // channels
  std::int64_t width = 32;       // channels of the first level; each further level has twice as many
  std::int64_t levels = 4;       // how often the sizes are halved; 2^levels must divide them
};

template <int Axes>
class UNet final : public FieldModel {
 public:
  explicit UNet(const UNetConfig& config);
  Value operator()(Value input) const override;

 private:
  UNetConfig config_;
  std::vector<std::unique_ptr<nn::Child<DoubleConv<Axes>>>> down_;         // levels + 1
  std::vector<std::unique_ptr<nn::Child<nn::ConvTranspose<Axes>>>> grow_;  // levels, from the deepest one up
  std::vector<std::unique_ptr<nn::Child<DoubleConv<Axes>>>> up_;
  nn::Child<nn::Conv<Axes>> head_;
};

extern template class UNet<1>;
extern template class UNet<2>;
extern template class UNet<3>;

FieldModelEntry unet_entry();

}  // namespace lockstep::models
