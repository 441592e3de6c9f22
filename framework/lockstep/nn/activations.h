// Activations with options, for Sequential; they have PyTorch's names and defaults. Activations without options are the
// functions of ops/pointwise.h, which Sequential takes as they are: append(silu).
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep::nn {

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : slope_(negative_slope) {}
  Value operator()(Value x) const { return leaky_relu(x, slope_); }

 private:
  double slope_;
};

class ELU : public Module {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Value operator()(Value x) const { return elu(x, alpha_); }

 private:
  double alpha_;
};

class Softplus : public Module {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Value operator()(Value x) const { return softplus(x, beta_, threshold_); }

 private:
  double beta_, threshold_;
};

}  // namespace lockstep::nn
