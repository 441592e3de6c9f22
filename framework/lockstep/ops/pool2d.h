// Max, average and global average pooling of x (N, C, H, W), with output sizes as in PyTorch.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

struct Pool2dOptions {
  std::int64_t kernel_h = 2, kernel_w = 2, stride_h = 2, stride_w = 2, padding_h = 0, padding_w = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;  // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;  // average pooling only
};

enum class Pool : std::uint8_t { Max, Average };

// Max: x -> (y, position of the maximum in its window: h * kernel_w + w, u8 for windows of up to 255 elements, else
// i32). Average: x -> y.
class Pool2dOp : public Op {
 public:
  Pool2dOp(Pool kind, Pool2dOptions options) : kind_(kind), options_(options) {}
  Pool kind() const { return kind_; }
  const Pool2dOptions& options() const { return options_; }
  std::string_view name() const override { return kind_ == Pool::Max ? "max_pool2d" : "average_pool2d"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  Pool kind_;
  Pool2dOptions options_;
};

// Max: (dy, position) -> dx. Average: (dy) -> dx.
class Pool2dGradientOp : public Op {
 public:
  Pool2dGradientOp(Pool kind, Pool2dOptions options, Shape input)
      : kind_(kind), options_(options), input_(std::move(input)) {}
  Pool kind() const { return kind_; }
  const Pool2dOptions& options() const { return options_; }
  std::string_view name() const override {
    return kind_ == Pool::Max ? "max_pool2d_gradient" : "average_pool2d_gradient";
  }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;  // average pooling only

 private:
  Pool kind_;
  Pool2dOptions options_;
  Shape input_;
};

// Returns the maximum of each window. Throws Error where the options do not fit x.
Value max_pool2d(Value x, Pool2dOptions options);
// Returns the mean of each window. Throws Error where the options do not fit x.
Value average_pool2d(Value x, Pool2dOptions options);
// Returns the mean of each plane: (N, C, H, W) -> (N, C, 1, 1).
Value global_average_pool2d(Value x);

}  // namespace lockstep
