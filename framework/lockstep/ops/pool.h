// Max and average pooling of x (N, C, spatial sizes) over one to three spatial axes, with output sizes as in PyTorch.
// The number of axes is part of the ops' names: max_pool1d, max_pool2d, max_pool3d.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

struct PoolAxis {
  std::int64_t kernel = 2, stride = 2, padding = 0;
  std::int64_t dilation = 1;  // max pooling only
};

struct PoolOptions {
  std::vector<PoolAxis> axes = {};  // one per spatial axis, the outermost first
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};

// The options of pooling over two axes, by name.
struct Pool2dOptions {
  std::int64_t kernel_h = 2, kernel_w = 2, stride_h = 2, stride_w = 2, padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;  // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
  operator PoolOptions() const;
};

enum class Pool : std::uint8_t { Max, Average };

// Max: x -> (y, position of the maximum in its window, row-major: h * kernel_w + w with two axes; u8 for windows of up
// to 255 elements, else i32). Average: x -> y.
class PoolOp : public Op {
 public:
  // Throws Error for no axes, or more than three.
  PoolOp(Pool kind, PoolOptions options);
  Pool kind() const { return kind_; }
  const PoolOptions& options() const { return options_; }
  std::string_view name() const override;
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  Pool kind_;
  PoolOptions options_;
};

// Max: (dy, position) -> dx. Average: (dy) -> dx.
class PoolGradientOp : public Op {
 public:
  PoolGradientOp(Pool kind, PoolOptions options, Shape input);
  Pool kind() const { return kind_; }
  const PoolOptions& options() const { return options_; }
  std::string_view name() const override;
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;  // average pooling only
  std::string attributes() const override;

 private:
  Pool kind_;
  PoolOptions options_;
  Shape input_;
};

// Returns the maximum or the mean of each window. Throws Error where the options do not fit x.
Value pool(Pool kind, Value x, PoolOptions options);
// The same over two axes.
Value max_pool2d(Value x, Pool2dOptions options);
Value average_pool2d(Value x, Pool2dOptions options);
// Returns the mean over all spatial axes: (N, C, H, W) -> (N, C, 1, 1), and so with one axis or three.
Value global_average_pool(Value x);
// The same, for images alone.
Value global_average_pool2d(Value x);

}  // namespace lockstep
