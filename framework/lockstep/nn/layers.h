// The layers that have parameters or options. Their parameters have PyTorch's names and initial values. A layer's call
// traces its op on symbolic values; it throws Error with the layer's module path where the shapes do not fit.
// Activations and pooling without options are the free functions of ops/. nn/norms.h has the normalisations. One thread
// traces a model.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/convolution.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/norms.h"
#include "lockstep/nn/pooling.h"

namespace lockstep::nn {

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

}  // namespace lockstep::nn
