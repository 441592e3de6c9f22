// Normalisations as modules, with PyTorch's parameter names, defaults and initial values (scales 1, shifts 0). A call
// traces the op on symbolic values; it throws Error with the module path where shapes do not fit. One thread traces a
// model.
#pragma once

#include <optional>
#include <string>

#include "lockstep/nn/child.h"
#include "lockstep/nn/init.h"

namespace lockstep::nn {

struct BatchNormConfig {
  std::int64_t channels;
  double epsilon = 1e-5, momentum = 0.1;
  double initial_scale = 1;
  bool sync = false;  // normalise by the statistics of all ranks' samples
};
using BatchNorm2dConfig = BatchNormConfig;

// The parameters of a batch norm, each (channels), and the number of updates of its running statistics, a scalar.
struct BatchNormParameters {
  const Parameter *weight, *bias, *mean, *variance, *batches = nullptr;
};
// Normalises x (N, channels, ...) as BatchNorm below does, with parameters that any module owns. `path` names the norm
// in messages. Throws Error where shapes do not fit.
Value batch_norm(Value x, const BatchNormParameters& parameters, const BatchNormConfig& config, const std::string& path,
                 bool frozen = false);

// Normalises x (N, channels, ...) per channel; the classes below say which dimensions may follow. In training it uses
// the statistics of the batch (of each shard, or with `sync` of all ranks together) and moves running_mean and
// running_var once per step towards the statistics of the global batch. At evaluation, or with frozen statistics, it
// uses the running statistics. Parameters: weight, bias; buffers: running_mean, running_var, num_batches_tracked.
class BatchNorm : public Module {
 public:
  using Config = BatchNormConfig;
  Value operator()(Value x) const;
  void freeze_statistics(bool freeze) override { frozen_ = freeze; }

 protected:
  struct Ranks {  // of x
    int least, most;
    const char* expected;
  };
  BatchNorm(Config config, Ranks ranks);

 private:
  Config config_;
  Ranks ranks_;
  BatchNormParameters parameters_;
  bool frozen_ = false;
};

class BatchNorm1d : public BatchNorm {  // x (N, channels) or (N, channels, length)
 public:
  explicit BatchNorm1d(Config config)
      : BatchNorm(config, {2, 3, "(samples, channels) or (samples, channels, length)"}) {}
};
class BatchNorm2d : public BatchNorm {  // x (N, channels, height, width)
 public:
  explicit BatchNorm2d(Config config) : BatchNorm(config, {4, 4, "(samples, channels, height, width)"}) {}
};
class BatchNorm3d : public BatchNorm {  // x (N, channels, depth, height, width)
 public:
  explicit BatchNorm3d(Config config) : BatchNorm(config, {5, 5, "(samples, channels, depth, height, width)"}) {}
};

struct LayerNormConfig {
  Shape shape;  // of the last dimensions, which are normalised together
  double epsilon = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;  // beside a weight
};

// Normalises x (..., shape) over the last dimensions. Parameters: weight and bias, of that shape.
class LayerNorm : public Module {
 public:
  using Config = LayerNormConfig;
  explicit LayerNorm(Config config);
  Value operator()(Value x) const;

 private:
  Config config_;
  Parameter *weight_, *bias_;  // or null
};

struct RMSNormConfig {
  Shape shape;
  std::optional<double> epsilon = {};  // none: the distance of 1 to the next number of the statistics' type
  bool elementwise_affine = true;
};

// Divides x (..., shape) by the root of the mean square over the last dimensions. Parameter: weight, of that shape.
class RMSNorm : public Module {
 public:
  using Config = RMSNormConfig;
  explicit RMSNorm(Config config);
  Value operator()(Value x) const;

 private:
  Config config_;
  Parameter* weight_;  // or null
};

struct GroupNormConfig {
  std::int64_t groups, channels;
  double epsilon = 1e-5;
  bool affine = true;
};

// Normalises x (N, channels, ...) over each group of channels of a sample. Parameters: weight and bias (channels).
class GroupNorm : public Module {
 public:
  using Config = GroupNormConfig;
  explicit GroupNorm(Config config);  // throws Error where groups do not divide channels
  Value operator()(Value x) const;

 private:
  Config config_;
  Parameter *weight_, *bias_;  // or null
};

struct InstanceNormConfig {
  std::int64_t channels;
  double epsilon = 1e-5;
  bool affine = false;
};

// Normalises x (N, channels, ...) over each channel of a sample, always by the sample's own statistics. Parameters, if
// affine: weight and bias (channels).
class InstanceNorm : public Module {
 public:
  using Config = InstanceNormConfig;
  Value operator()(Value x) const;

 protected:
  InstanceNorm(Config config, int rank, const char* expected);

 private:
  Config config_;
  int rank_;
  const char* expected_;
  Parameter *weight_, *bias_;  // or null
};

class InstanceNorm1d : public InstanceNorm {
 public:
  explicit InstanceNorm1d(Config config) : InstanceNorm(config, 3, "(samples, channels, length)") {}
};
class InstanceNorm2d : public InstanceNorm {
 public:
  explicit InstanceNorm2d(Config config) : InstanceNorm(config, 4, "(samples, channels, height, width)") {}
};
class InstanceNorm3d : public InstanceNorm {
 public:
  explicit InstanceNorm3d(Config config) : InstanceNorm(config, 5, "(samples, channels, depth, height, width)") {}
};

}  // namespace lockstep::nn
