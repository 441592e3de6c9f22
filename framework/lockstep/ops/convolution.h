// Convolution (cross-correlation, as in every framework) over one to three spatial axes: x (N, C, spatial sizes),
// weight (O, C / groups, filter sizes), bias (O) -> y (N, O, spatial sizes). The number of axes is part of the ops'
// names: conv1d, conv2d, conv3d. A transposed convolution is the gradient by x, used forwards: no op of its own.
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/ops/epilogue.h"

namespace lockstep {

struct ConvolutionAxis {
  std::int64_t stride = 1, padding = 0, dilation = 1;  // padding: zeros at each of the two ends
  bool operator==(const ConvolutionAxis&) const = default;
};

struct ConvolutionOptions {
  std::vector<ConvolutionAxis> axes = {};  // one per spatial axis, the outermost first
  std::int64_t groups = 1;
  bool operator==(const ConvolutionOptions&) const = default;
};

// The options of a convolution over two axes, by name.
struct Conv2dOptions {
  std::int64_t stride_h = 1, stride_w = 1, padding_h = 0, padding_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;
  operator ConvolutionOptions() const;
};

class ConvolutionOp : public Op {
 public:
  // Throws Error for no axes, or more than three.
  explicit ConvolutionOp(ConvolutionOptions options, Epilogue epilogue = {});
  const ConvolutionOptions& options() const { return options_; }
  const Epilogue& epilogue() const { return epilogue_; }
  bool has_bias(std::size_t inputs) const { return inputs > (epilogue_.residual ? 3 : 2); }
  std::string_view name() const override;
  // Inputs: x, weight, [bias], [residual].
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  ConvolutionOptions options_;
  Epilogue epilogue_;
};

// The gradient with respect to x: (dy, weight) -> dx of the given shape.
class ConvolutionBackwardDataOp : public Op {
 public:
  ConvolutionBackwardDataOp(ConvolutionOptions options, Shape input);
  const ConvolutionOptions& options() const { return options_; }
  std::string_view name() const override;
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  ConvolutionOptions options_;
  Shape input_;
};

// The gradient with respect to weight and bias: (x, dy) -> dweight of the given shape, and dbias if there is a bias.
class ConvolutionBackwardWeightsOp : public Op {
 public:
  ConvolutionBackwardWeightsOp(ConvolutionOptions options, Shape weight, bool bias);
  const ConvolutionOptions& options() const { return options_; }
  std::string_view name() const override;
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  ConvolutionOptions options_;
  Shape weight_;
  bool bias_;
};

// Convolves x with weight and adds the bias, unless it is an empty Value. Without axes in the options, those of the
// weight have stride 1, no padding and no dilation. Throws Error where shapes or types do not fit.
Value convolution(Value x, Value weight, Value bias = {}, ConvolutionOptions options = {});
// The same over two axes.
Value conv2d(Value x, Value weight, Value bias = {}, Conv2dOptions options = {});

}  // namespace lockstep
