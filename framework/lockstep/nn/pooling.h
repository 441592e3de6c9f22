// Pooling and enlarging as modules, with PyTorch's names and defaults, and as functions. None has parameters. One
// thread traces a model.
#pragma once

#include "lockstep/nn/child.h"
#include "lockstep/nn/per_axis.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"

namespace lockstep::nn {

template <int Axes>
struct MaxPoolConfig {
  PerAxis<Axes> kernel;
  PerAxis<Axes> stride = 0;  // 0: as large as the kernel
  PerAxis<Axes> padding = 0, dilation = 1;
  bool ceil_mode = false;
};

// The maximum of each window of x (N, C, spatial sizes).
template <int Axes>
class MaxPool : public Module {
 public:
  using Config = MaxPoolConfig<Axes>;
  explicit MaxPool(const Config& config);
  Value operator()(Value x) const;

 private:
  PoolOptions options_;
};

template <int Axes>
struct AvgPoolConfig {
  PerAxis<Axes> kernel;
  PerAxis<Axes> stride = 0;  // 0: as large as the kernel
  PerAxis<Axes> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

// The mean of each window of x (N, C, spatial sizes).
template <int Axes>
class AvgPool : public Module {
 public:
  using Config = AvgPoolConfig<Axes>;
  explicit AvgPool(const Config& config);
  Value operator()(Value x) const;

 private:
  PoolOptions options_;
};

template <int Axes>
struct AdaptiveAvgPoolConfig {
  PerAxis<Axes> size;  // of the result
};

// Means of x (N, C, spatial sizes) over windows of which each axis has `size`; see adaptive_average_pool().
template <int Axes>
class AdaptiveAvgPool : public Module {
 public:
  using Config = AdaptiveAvgPoolConfig<Axes>;
  explicit AdaptiveAvgPool(const Config& config) : size_(config.size) {}
  Value operator()(Value x) const;

 private:
  PerAxis<Axes> size_;
};

// Enlarges x (N, C, one to three spatial axes); see upsample().
class Upsample : public Module {
 public:
  using Config = UpsampleOptions;
  explicit Upsample(Config config) : options_(std::move(config)) {}
  Value operator()(Value x) const { return upsample(x, options_); }

 private:
  UpsampleOptions options_;
};

using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

extern template class MaxPool<1>;
extern template class MaxPool<2>;
extern template class MaxPool<3>;
extern template class AvgPool<1>;
extern template class AvgPool<2>;
extern template class AvgPool<3>;
extern template class AdaptiveAvgPool<1>;
extern template class AdaptiveAvgPool<2>;
extern template class AdaptiveAvgPool<3>;

struct PoolConfig {
  std::int64_t kernel, stride = 0, padding = 0;  // stride 0: as large as the kernel
  bool ceil_mode = false;
};
// The maximum or the mean of each window of x (N, C, one to three spatial axes), which is as long along each axis;
// padding counts in the mean, as in PyTorch.
Value max_pool(Value x, PoolConfig config);
Value average_pool(Value x, PoolConfig config);

}  // namespace lockstep::nn
