// Convolutions and transposed convolutions over one to three spatial axes, with PyTorch's names, defaults and parameter
// shapes. One thread traces a model.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/per_axis.h"
#include "lockstep/ops/conv_transpose.h"
#include "lockstep/ops/resample.h"

namespace lockstep::nn {

template <int Axes>
struct ConvConfig {
  std::int64_t in, out;
  PerAxis<Axes> kernel = 1, stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::Zeros;
  Initializer weight_init = {}, bias_init = {};  // empty: PyTorch's default
};

// Convolves x (N, in, spatial sizes). Parameters: weight (out, in / groups, kernel), bias (out). The constructor throws
// Error where the groups do not divide the channels.
template <int Axes>
class Conv : public Module {
 public:
  using Config = ConvConfig<Axes>;
  explicit Conv(Config config);
  Value operator()(Value x) const;

 private:
  ConvolutionOptions options_;
  PaddingMode padding_mode_;
  std::vector<std::int64_t> padding_;  // by a mode other than zeros; empty: by the convolution
  Parameter& weight_;
  Parameter* bias_;
};

template <int Axes>
struct ConvTransposeConfig {
  std::int64_t in, out;
  PerAxis<Axes> kernel = 1, stride = 1, padding = 0, output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  PerAxis<Axes> dilation = 1;
  Initializer weight_init = {}, bias_init = {};  // empty: PyTorch's default
};

// The transposed convolution (ops/conv_transpose.h) of x (N, in, spatial sizes). Parameters: weight (in, out / groups,
// kernel), bias (out). The constructor throws Error where the groups do not divide the channels.
template <int Axes>
class ConvTranspose : public Module {
 public:
  using Config = ConvTransposeConfig<Axes>;
  explicit ConvTranspose(Config config);
  Value operator()(Value x) const;

 private:
  ConvTransposeOptions options_;
  Parameter& weight_;
  Parameter* bias_;
};

using Conv1dConfig = ConvConfig<1>;
using Conv2dConfig = ConvConfig<2>;
using Conv3dConfig = ConvConfig<3>;
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;
using ConvTranspose1dConfig = ConvTransposeConfig<1>;
using ConvTranspose2dConfig = ConvTransposeConfig<2>;
using ConvTranspose3dConfig = ConvTransposeConfig<3>;
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;
extern template class ConvTranspose<1>;
extern template class ConvTranspose<2>;
extern template class ConvTranspose<3>;

}  // namespace lockstep::nn
