// The layers that have parameters or options. Their parameters have PyTorch's names and initial values. A layer's call
// traces its op on symbolic values; it throws Error with the layer's module path where the shapes do not fit.
// Activations and pooling without options are the free functions of ops/. One thread traces a model.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/convolution.h"
#include "lockstep/nn/init.h"
#include "lockstep/nn/pooling.h"

namespace lockstep::nn {

struct LinearConfig {
  std::int64_t in, out;
  bool bias = true;
  Initializer weight_init = {}, bias_init = {};
};

// Computes x W^T + b for x (N, in); the result is (N, out). Parameters: weight (out, in), bias (out).
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

struct BatchNorm2dConfig {
  std::int64_t channels;
  double epsilon = 1e-5, momentum = 0.1;
  double initial_scale = 1;
  bool sync = false;  // normalise by the statistics of all ranks' samples
};

// Normalises x (N, channels, H, W) per channel. In training it uses the statistics of the batch (of each shard, or with
// `sync` of all ranks together) and moves running_mean and running_var once per step towards the statistics of the
// global batch. At evaluation, or with frozen statistics, it uses the running statistics.
class BatchNorm2d : public Module {
 public:
  using Config = BatchNorm2dConfig;
  explicit BatchNorm2d(Config config);
  Value operator()(Value x) const;
  void freeze_statistics(bool freeze) override { frozen_ = freeze; }

 private:
  BatchNorm2dConfig config_;
  Parameter &weight_, &bias_, &mean_, &variance_, &batches_;
  bool frozen_ = false;
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
