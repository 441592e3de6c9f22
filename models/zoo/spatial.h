// The part that models with 1 to 3 spatial axes share.
#pragma once

#include <type_traits>

#include "lockstep/nn/layers.h"
#include "lockstep/nn/norms.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep::models {

template <int Axes>
using BatchNormOf =
    std::conditional_t<Axes == 1, nn::BatchNorm1d, std::conditional_t<Axes == 2, nn::BatchNorm2d, nn::BatchNorm3d>>;

// Returns how often, up to `most`, all spatial sizes can be halved without a rest; and how often the smallest one can
// be halved, rounded down each time.
std::int64_t halvings(const Shape& sizes, std::int64_t most);
std::int64_t rough_halvings(const Shape& sizes, std::int64_t most);

// Two convolutions of 3 elements per axis, each with batch norm and ReLU. The spatial sizes stay. Layers: "conv1",
// "bn1", "conv2", "bn2".
template <int Axes>
class DoubleConv : public nn::Module {
 public:
  DoubleConv(std::int64_t in, std::int64_t out)
      : conv1_(this, "conv1", {.in = in, .out = out, .kernel = 3, .padding = 1, .bias = false}),
        bn1_(this, "bn1", {.channels = out}),
        conv2_(this, "conv2", {.in = out, .out = out, .kernel = 3, .padding = 1, .bias = false}),
        bn2_(this, "bn2", {.channels = out}) {}
  Value operator()(Value x) const { return relu(bn2_(conv2_(relu(bn1_(conv1_(x)))))); }

 private:
  nn::Child<nn::Conv<Axes>> conv1_;
  nn::Child<BatchNormOf<Axes>> bn1_;
  nn::Child<nn::Conv<Axes>> conv2_;
  nn::Child<BatchNormOf<Axes>> bn2_;
};

}  // namespace lockstep::models
