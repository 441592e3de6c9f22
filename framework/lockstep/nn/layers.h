// The layers that have parameters or options. Their parameters have PyTorch's names and initial values. A layer's call
// traces its op on symbolic values; it throws Error with the layer's module path where the shapes do not fit.
// Activations and pooling without options are the free functions of ops/. nn/norms.h has the normalisations. One thread
// traces a model.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/norms.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/pool2d.h"

namespace lockstep::nn {

struct Conv2dConfig {
  std::int64_t in, out, kernel = 1, stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  Initializer weight_init = {}, bias_init = {};  // empty: PyTorch's default
};

// Convolves x (N, in, H, W) with square filters. Parameters: weight (out, in / groups, kernel, kernel), bias (out).
class Conv2d : public Module {
 public:
  using Config = Conv2dConfig;
  explicit Conv2d(Config config);
  Value operator()(Value x) const;

 private:
  Conv2dOptions options_;
  Parameter& weight_;
  Parameter* bias_;
};

struct LinearConfig {
  std::int64_t in, out;
  bool bias = true;
  Initializer weight_init = {}, bias_init = {};
};

// Computes x W^T + b for x (..., in); the result is (..., out). Parameters: weight (out, in), bias (out).
class Linear : public Module {
 public:
  using Config = LinearConfig;
  explicit Linear(Config config);
  Value operator()(Value x) const;
  Parameter& weight() const { return weight_; }  // owned by this layer; another module can tie it

 private:
  Parameter& weight_;
  Parameter* bias_;
};

// In training sets each element to 0 with this probability and divides the others by 1 - probability; at evaluation
// returns x. The probability is in [0, 1).
class Dropout : public Module {
 public:
  explicit Dropout(double probability) : probability_(probability) {}
  Value operator()(Value x) const;

 private:
  double probability_;
};

struct PoolConfig {
  std::int64_t kernel, stride = 0, padding = 0;  // stride 0: as large as the kernel
  bool ceil_mode = false;
};
// The maximum or the mean of each square window of x (N, C, H, W); padding counts in the mean, as in PyTorch.
Value max_pool(Value x, PoolConfig config);
Value average_pool(Value x, PoolConfig config);

}  // namespace lockstep::nn
