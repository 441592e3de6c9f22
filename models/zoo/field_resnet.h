// Residual networks (He et al., "Deep residual learning for image recognition", 2015) of fields over 1 to 3 spatial
// axes: one that ends in numbers, and one that ends in fields.
#pragma once

#include <memory>

#include "lockstep/nn/convolution.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "models/zoo/field_model.h"
#include "models/zoo/spatial.h"

namespace lockstep::models {

// relu(shortcut(x) + bn2(conv2(relu(bn1(conv1(x)))))), where conv1 has the stride. Layers: "conv1", "bn1", "conv2",
// "bn2", and "shortcut", "shortcut_bn" where the shape changes.
template <int Axes>
class FieldBlock : public nn::Module {
 public:
  FieldBlock(std::int64_t in, std::int64_t out, std::int64_t stride);
  Value operator()(Value x) const;

 private:
  nn::Child<nn::Conv<Axes>> conv1_;
  nn::Child<BatchNormOf<Axes>> bn1_;
  nn::Child<nn::Conv<Axes>> conv2_;
  nn::Child<BatchNormOf<Axes>> bn2_;
  std::unique_ptr<nn::Child<nn::Conv<Axes>>> shortcut_;
  std::unique_ptr<nn::Child<BatchNormOf<Axes>>> shortcut_bn_;
};

struct FieldToNumbersConfig {
  std::int64_t in = 1;  // channels
  Shape output = {1};
  std::int64_t width = 32;  // channels of the first stage; each further stage has twice as many and halves the sizes
  std::int64_t depth = 4;   // stages of two blocks
};

// Stages of blocks, the mean over all points, and a linear layer. Layers: "body.0", "body.1", ..., "head".
template <int Axes>
class FieldToNumbers final : public FieldModel {
 public:
  explicit FieldToNumbers(const FieldToNumbersConfig& config);
  Value operator()(Value input) const override;

 private:
  Shape output_;
  nn::Child<nn::Sequential> body_;
  nn::Child<nn::Linear> head_;
};

struct FieldResNetConfig {
  std::int64_t in = 1, out = 1;  // channels
  std::int64_t width = 32;       // channels at full size; each halving doubles them
  std::int64_t halvings = 2;     // of the sizes, which 2^halvings must divide
  std::int64_t depth = 6;        // blocks at the smallest sizes
};

// Halves the sizes by convolutions of stride 2, works there with residual blocks, and doubles the sizes again (the
// network of Johnson, Alahi and Fei-Fei, "Perceptual losses for real-time style transfer and super-resolution", 2016,
// with transposed convolutions of 2 elements). Layers: "body.0", "body.1", ..., "head".
template <int Axes>
class FieldResNet final : public FieldModel {
 public:
  explicit FieldResNet(const FieldResNetConfig& config);
  Value operator()(Value input) const override;

 private:
  nn::Child<nn::Sequential> body_;
  nn::Child<nn::Conv<Axes>> head_;
};

FieldModelEntry field_resnet_entry();

}  // namespace lockstep::models
