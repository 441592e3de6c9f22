// A plain convolutional network that keeps the spatial sizes, and a convolutional autoencoder that squeezes them, over
// 1 to 3 spatial axes.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/nn/convolution.h"
#include "models/zoo/field_model.h"
#include "models/zoo/spatial.h"

namespace lockstep::models {

struct FieldCnnConfig {
  std::int64_t in = 1, out = 1;  // channels
  std::int64_t width = 64;       // channels inside
  std::int64_t depth = 4;        // pairs of convolutions
};

// Pairs of convolutions with batch norm, each added to its input, between "in" and "head": a residual network at full
// resolution. Layers: "in", "block0", ..., "head".
template <int Axes>
class FieldCnn final : public FieldModel {
 public:
  explicit FieldCnn(const FieldCnnConfig& config);
  Value operator()(Value input) const override;

 private:
  nn::Child<nn::Conv<Axes>> in_, head_;
  std::vector<std::unique_ptr<nn::Child<DoubleConv<Axes>>>> blocks_;
};

struct AutoencoderConfig {
  std::int64_t in = 1, out = 1;  // channels
  std::int64_t width = 32;       // channels of the first level; each further level has twice as many
  std::int64_t levels = 3;       // how often the sizes are halved; 2^levels must divide them
};

// An encoder that halves the sizes by convolutions of stride 2, and a decoder that doubles them. No connection leads
// around the smallest level. Layers: "encoder0", ..., "decoder0", ..., "head".
template <int Axes>
class Autoencoder : public FieldModel {
 public:
  explicit Autoencoder(const AutoencoderConfig& config);
  Value operator()(Value input) const override;
  Value encode(Value input) const;  // (N, in, sizes) -> (N, width 2^(levels - 1), sizes / 2^levels)
  Value decode(Value x) const;      // back to (N, out, sizes)

 private:
  std::int64_t levels_;
  nn::Child<nn::Conv<Axes>> head_;
  std::vector<std::unique_ptr<nn::Child<nn::Conv<Axes>>>> shrink_;
  std::vector<std::unique_ptr<nn::Child<BatchNormOf<Axes>>>> shrink_norms_;
  std::vector<std::unique_ptr<nn::Child<nn::ConvTranspose<Axes>>>> grow_;
  std::vector<std::unique_ptr<nn::Child<BatchNormOf<Axes>>>> grow_norms_;
};

extern template class Autoencoder<1>;
extern template class Autoencoder<2>;
extern template class Autoencoder<3>;

// Returns the configuration of an autoencoder from that of the table.
AutoencoderConfig autoencoder_config(const FieldModelConfig& config);

FieldModelEntry field_cnn_entry();
FieldModelEntry autoencoder_entry();

}  // namespace lockstep::models
