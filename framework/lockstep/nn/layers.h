// The layers with parameters or options of their own, named and initialised as PyTorch's. Activations and pooling
// without options worth naming are the free functions of ops/.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/pool2d.h"

namespace lockstep::nn {

struct Conv2dConfig {
  std::int64_t in, out, kernel = 1, stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  Initializer weight_init = {}, bias_init = {};  // empty: PyTorch's default
};

class Conv2d : public Module {  // weight (out, in / groups, kernel, kernel), bias (out)
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

class Linear : public Module {  // weight (out, in), bias (out); x (N, in) -> (N, out)
 public:
  using Config = LinearConfig;
  explicit Linear(Config config);
  Value operator()(Value x) const;
  Parameter& weight() const { return weight_; }

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

// In training normalises by the batch's statistics (per shard, or with sync of all ranks together) and moves
// running_mean and running_var towards those of the global batch, once per step; at evaluation, or with frozen
// statistics, by the running ones.
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
Value max_pool(Value x, PoolConfig config);
Value average_pool(Value x, PoolConfig config);

}  // namespace lockstep::nn
